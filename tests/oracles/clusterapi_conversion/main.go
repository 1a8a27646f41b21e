// Converts objects between v1beta1 and v1beta2 with Cluster API's own functions.
//
// convert: an array of objects on stdin, an array of {"object": …} or {"error": …} on stdout.
// fuzz:    objects of both versions of the bootstrap group with every field filled at random, from a fixed seed.
// machines: the same of the core and control-plane groups.
// addons:  the same of the addons group.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	addonsv1beta1 "sigs.k8s.io/cluster-api/api/addons/v1beta1"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	v1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta1"
	v1beta2 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/webhooks/conversion"
	controlplane "sigs.k8s.io/cluster-api/controlplane/kubeadm/webhooks/conversion"
	core "sigs.k8s.io/cluster-api/core/webhooks/conversion"
)

const seed = 20260516

type answer struct {
	Object any    `json:"object,omitempty"`
	Error  string `json:"error,omitempty"`
}

// What a server with a CRD for each kind but "Unknown" would say.
func apiVersion(_ context.Context, kind schema.GroupKind) (string, error) {
	if kind.Kind == "Unknown" {
		return "", errors.New("no such kind")
	}
	return kind.Group + "/v1beta2", nil
}

func main() {
	core.SetAPIVersionGetter(apiVersion)
	controlplane.SetAPIVersionGetter(apiVersion)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	switch os.Args[1] {
	case "convert":
		var questions []json.RawMessage
		must(json.NewDecoder(os.Stdin).Decode(&questions))
		answers := make([]answer, len(questions))
		for i, question := range questions {
			object, err := convert(question)
			if err != nil {
				answers[i] = answer{Error: err.Error()}
			} else {
				answers[i] = answer{Object: object}
			}
		}
		must(out.Encode(answers))
	case "fuzz":
		must(out.Encode(fuzzed(6)))
	case "machines":
		must(out.Encode(machines(5)))
	case "addons":
		must(out.Encode(addons(5)))
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// One kind: both versions of it, and the functions between them.
type way func(raw []byte, toHub bool) (any, error)

func between[Old, Hub any](
	up func(context.Context, *Old, *Hub) error, down func(context.Context, *Hub, *Old) error,
) way {
	return func(raw []byte, toHub bool) (any, error) {
		old, hub := new(Old), new(Hub)
		if toHub {
			if err := json.Unmarshal(raw, old); err != nil {
				return nil, err
			}
			return hub, up(context.Background(), old, hub)
		}
		if err := json.Unmarshal(raw, hub); err != nil {
			return nil, err
		}
		return old, down(context.Background(), hub, old)
	}
}

var ways = map[string]way{
	"KubeadmConfig":         between(conversion.ConvertKubeadmConfigV1Beta1ToHub, conversion.ConvertKubeadmConfigHubToV1Beta1),
	"KubeadmConfigTemplate": between(conversion.ConvertKubeadmConfigTemplateV1Beta1ToHub, conversion.ConvertKubeadmConfigTemplateHubToV1Beta1),
	"Cluster":               between(core.ConvertClusterV1Beta1ToHub, core.ConvertClusterHubToV1Beta1),
	"Machine":               between(core.ConvertMachineV1Beta1ToHub, core.ConvertMachineHubToV1Beta1),
	"MachineSet":            between(core.ConvertMachineSetV1Beta1ToHub, core.ConvertMachineSetHubToV1Beta1),
	"MachineDeployment":     between(core.ConvertMachineDeploymentV1Beta1ToHub, core.ConvertMachineDeploymentHubToV1Beta1),
	"MachineHealthCheck":    between(core.ConvertMachineHealthCheckV1Beta1ToHub, core.ConvertMachineHealthCheckHubToV1Beta1),
	"MachineDrainRule":      between(core.ConvertMachineDrainRuleV1Beta1ToHub, core.ConvertMachineDrainRuleHubToV1Beta1),
	"ClusterResourceSet":    between(core.ConvertClusterResourceSetV1Beta1ToHub, core.ConvertClusterResourceSetHubToV1Beta1),
	"ClusterResourceSetBinding": between(
		core.ConvertClusterResourceSetBindingV1Beta1ToHub, core.ConvertClusterResourceSetBindingHubToV1Beta1,
	),
	"KubeadmControlPlane": between(
		controlplane.ConvertKubeadmControlPlaneV1Beta1ToHub, controlplane.ConvertKubeadmControlPlaneHubToV1Beta1,
	),
	"KubeadmControlPlaneTemplate": between(
		controlplane.ConvertKubeadmControlPlaneTemplateV1Beta1ToHub, controlplane.ConvertKubeadmControlPlaneTemplateHubToV1Beta1,
	),
}

func convert(raw []byte) (any, error) {
	var kind metav1.TypeMeta
	if err := json.Unmarshal(raw, &kind); err != nil {
		return nil, err
	}
	given, err := schema.ParseGroupVersion(kind.APIVersion)
	if err != nil {
		return nil, err
	}
	way, known := ways[kind.Kind]
	if !known || (given.Version != "v1beta1" && given.Version != "v1beta2") {
		return nil, fmt.Errorf("nothing to convert in a %s %s", kind.Kind, kind.APIVersion)
	}
	object, err := way(raw, given.Version == "v1beta1")
	if err != nil {
		return nil, err
	}
	wanted := "v1beta2"
	if given.Version == wanted {
		wanted = "v1beta1"
	}
	object.(runtime.Object).GetObjectKind().SetGroupVersionKind(
		schema.GroupVersionKind{Group: given.Group, Version: wanted, Kind: kind.Kind},
	)
	return object, nil
}

func filler(more ...any) *randfill.Filler {
	funcs := func(serializer.CodecFactory) []any {
		return append([]any{
			func(in *v1beta1.BootstrapTokenString, _ randfill.Continue) {
				in.ID, in.Secret = "abcdef", "abcdef0123456789"
			},
			func(in *v1beta2.BootstrapTokenString, _ randfill.Continue) {
				in.ID, in.Secret = "abcdef", "abcdef0123456789"
			},
			func(in *metav1.Duration, c randfill.Continue) { in.Duration = time.Duration(c.Int31()) * time.Second },
			// null in a list is nothing that a server would take.
			func(in *v1beta1.MountPoints, c randfill.Continue) {
				*in = v1beta1.MountPoints{c.String(9), c.String(9)}
			},
			func(in *v1beta2.MountPoints, c randfill.Continue) {
				*in = v1beta2.MountPoints{c.String(9), c.String(9)}
			},
			// The server keeps these apart from the rest; only what a conversion may touch is of interest.
			func(in *metav1.ObjectMeta, c randfill.Continue) {
				in.Name, in.Namespace = "fuzzed", "default"
				c.Fill(&in.Labels)
				c.Fill(&in.Annotations)
			},
		}, more...)
	}
	return fuzzer.FuzzerFor(
		fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, funcs), rand.NewSource(seed), serializer.NewCodecFactory(runtime.NewScheme()),
	).NilChance(0.2).NumElements(1, 2)
}

func fuzzed(count int) []any {
	filler := filler()
	var out []any
	for range count {
		out = append(out, filled(filler, "KubeadmConfig", v1beta1.GroupVersion, &v1beta1.KubeadmConfig{}))
		out = append(out, filled(filler, "KubeadmConfig", v1beta2.GroupVersion, &v1beta2.KubeadmConfig{}))
	}
	for range count / 3 {
		out = append(out, filled(filler, "KubeadmConfigTemplate", v1beta1.GroupVersion, &v1beta1.KubeadmConfigTemplate{}))
		out = append(out, filled(filler, "KubeadmConfigTemplate", v1beta2.GroupVersion, &v1beta2.KubeadmConfigTemplate{}))
	}
	return out
}

func filled(filler *randfill.Filler, kind string, version schema.GroupVersion, into runtime.Object) runtime.Object {
	filler.Fill(into)
	into.GetObjectKind().SetGroupVersionKind(version.WithKind(kind))
	return into
}

type pair struct {
	kind     string
	old, hub runtime.Object
}

func machines(count int) []any {
	filler := filler(
		func(in *intstr.IntOrString, c randfill.Continue) { *in = intstr.FromInt32(c.Int31n(50)) },
		func(in *apiextensionsv1.JSON, c randfill.Continue) { in.Raw = []byte(`{"a":[1,"b"]}`) },
		// A version that a CRD has: conversion writes no other.
		func(in *corev1.ObjectReference, c randfill.Continue) {
			in.APIVersion, in.Kind, in.Name, in.Namespace = "group.io/v1beta2", "Kind"+c.String(5), c.String(5), "default"
		},
		func(in *clusterv1.ContractVersionedObjectReference, c randfill.Continue) {
			in.APIGroup, in.Kind, in.Name = "group.io", "Kind"+c.String(5), c.String(5)
		},
	)
	var out []any
	for range count {
		for _, each := range []pair{
			{"Cluster", &clusterv1beta1.Cluster{}, &clusterv1.Cluster{}},
			{"Machine", &clusterv1beta1.Machine{}, &clusterv1.Machine{}},
			{"MachineSet", &clusterv1beta1.MachineSet{}, &clusterv1.MachineSet{}},
			{"MachineDeployment", &clusterv1beta1.MachineDeployment{}, &clusterv1.MachineDeployment{}},
			{"MachineHealthCheck", &clusterv1beta1.MachineHealthCheck{}, &clusterv1.MachineHealthCheck{}},
			{"MachineDrainRule", &clusterv1beta1.MachineDrainRule{}, &clusterv1.MachineDrainRule{}},
		} {
			out = append(out, filled(filler, each.kind, clusterv1beta1.GroupVersion, each.old))
			out = append(out, filled(filler, each.kind, clusterv1.GroupVersion, each.hub))
		}
	}
	for range count / 3 {
		for _, each := range []pair{
			{"KubeadmControlPlane", &controlplanev1beta1.KubeadmControlPlane{}, &controlplanev1.KubeadmControlPlane{}},
			{
				"KubeadmControlPlaneTemplate",
				&controlplanev1beta1.KubeadmControlPlaneTemplate{}, &controlplanev1.KubeadmControlPlaneTemplate{},
			},
		} {
			out = append(out, filled(filler, each.kind, controlplanev1beta1.GroupVersion, each.old))
			out = append(out, filled(filler, each.kind, controlplanev1.GroupVersion, each.hub))
		}
	}
	return out
}

func addons(count int) []any {
	filler := filler(
		// The schema takes no null in a list.
		func(in *addonsv1beta1.ClusterResourceSetBindingSpec, c randfill.Continue) {
			c.FillNoCustom(in)
			in.Bindings = slices.DeleteFunc(in.Bindings, func(each *addonsv1beta1.ResourceSetBinding) bool { return each == nil })
		},
	)
	var out []any
	for range count {
		for _, each := range []pair{
			{"ClusterResourceSet", &addonsv1beta1.ClusterResourceSet{}, &addonsv1.ClusterResourceSet{}},
			{"ClusterResourceSetBinding", &addonsv1beta1.ClusterResourceSetBinding{}, &addonsv1.ClusterResourceSetBinding{}},
		} {
			out = append(out, filled(filler, each.kind, addonsv1beta1.GroupVersion, each.old))
			out = append(out, filled(filler, each.kind, addonsv1.GroupVersion, each.hub))
		}
	}
	return out
}
