// Command gotypes answers what Go itself makes of Kubernetes objects, for one release at a time.
//
//	gotypes types              prints the struct types behind the objects that kubeadm writes, as JSON
//	gotypes roundtrip < cases  decodes documents as kubeadm does and writes them back
//	gotypes patch < cases      applies patches with the libraries that kubeadm applies them with
package main

import (
	"encoding/json"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	proxyv1alpha1 "k8s.io/kube-proxy/config/v1alpha1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
)

// families names the objects of each table; a table holds every type that they reach.
var families = map[string]map[string]any{
	"kubelet":    {"KubeletConfiguration": kubeletv1beta1.KubeletConfiguration{}},
	"kubeproxy":  {"KubeProxyConfiguration": proxyv1alpha1.KubeProxyConfiguration{}},
	"kubeconfig": {"Config": clientcmdv1.Config{}},
	"objects": {
		"Pod":                corev1.Pod{},
		"ConfigMap":          corev1.ConfigMap{},
		"Secret":             corev1.Secret{},
		"Service":            corev1.Service{},
		"ServiceAccount":     corev1.ServiceAccount{},
		"Deployment":         appsv1.Deployment{},
		"DaemonSet":          appsv1.DaemonSet{},
		"Role":               rbacv1.Role{},
		"RoleBinding":        rbacv1.RoleBinding{},
		"ClusterRole":        rbacv1.ClusterRole{},
		"ClusterRoleBinding": rbacv1.ClusterRoleBinding{},
	},
}

func main() {
	commands := map[string]func() (any, error){"types": types, "roundtrip": roundtrip, "patch": patch}
	if len(os.Args) != 2 || commands[os.Args[1]] == nil {
		fatal(fmt.Errorf("usage: gotypes types|roundtrip|patch"))
	}
	answer, err := commands[os.Args[1]]()
	if err != nil {
		fatal(err)
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(answer); err != nil {
		fatal(err)
	}
}

// root returns an object of a kind, whichever family it belongs to.
func root(kind string) (any, error) {
	for _, objects := range families {
		if object, found := objects[kind]; found {
			return object, nil
		}
	}
	return nil, fmt.Errorf("unknown kind %q", kind)
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
