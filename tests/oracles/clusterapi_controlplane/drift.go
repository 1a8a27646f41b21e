// Whether Cluster API finds that a Machine fits its control plane, and the objects that it would make.
// The recorder puts this file beside that code.
package pkg

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/pkg/desiredstate"
)

type oracleDrift struct {
	Now          string                              `json:"now"`
	ControlPlane *controlplanev1.KubeadmControlPlane `json:"controlPlane"`
	Cluster      *clusterv1.Cluster                  `json:"cluster"`
	Machine      *clusterv1.Machine                  `json:"machine"`
	Config       *bootstrapv1.KubeadmConfig          `json:"config"`
	Infra        map[string]any                      `json:"infra"`
	Template     map[string]any                      `json:"template"`
	Join         bool                                `json:"join"`
	Domain       string                              `json:"domain"`
}

func (d oracleDrift) client() *fake.ClientBuilder {
	scheme := runtime.NewScheme()
	_ = apiextensionsv1.AddToScheme(scheme)
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
		Name: "testmachinetemplates.infrastructure.cluster.x-k8s.io", Labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v1"},
	}}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(crd)
	if d.Template != nil {
		builder = builder.WithObjects(&unstructured.Unstructured{Object: d.Template})
	}
	return builder
}

func (d oracleDrift) drift() map[string]any {
	now, err := time.Parse(time.RFC3339, d.Now)
	if err != nil {
		panic(err)
	}
	infra, configs := map[string]*unstructured.Unstructured{}, map[string]*bootstrapv1.KubeadmConfig{}
	if d.Infra != nil {
		infra[d.Machine.Name] = &unstructured.Unstructured{Object: d.Infra}
	}
	if d.Config != nil {
		configs[d.Machine.Name] = d.Config
	}
	fits, result, err := UpToDate(context.Background(), d.client().Build(), d.Cluster, d.Machine, d.ControlPlane, &metav1.Time{Time: now}, infra, configs)
	if err != nil {
		return map[string]any{"error": true}
	}
	logged := []string{}
	for _, message := range result.LogMessages {
		text, _, _ := strings.Cut(message, " diff: ")
		logged = append(logged, text)
	}
	return map[string]any{"fits": fits, "messages": result.ConditionMessages, "logged": logged}
}

func (d oracleDrift) desired() map[string]any {
	machine, err := desiredstate.ComputeDesiredMachine(d.ControlPlane, d.Cluster, d.Domain, d.Machine)
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	config, err := desiredstate.ComputeDesiredKubeadmConfig(d.ControlPlane, d.Cluster, d.Join, "name", d.Config)
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	answer := map[string]any{"machine": machine, "config": config}
	if d.Template != nil {
		var existing *unstructured.Unstructured
		if d.Infra != nil {
			existing = &unstructured.Unstructured{Object: d.Infra}
		}
		infra, err := desiredstate.ComputeDesiredInfraMachine(context.Background(), d.client().Build(), d.ControlPlane, d.Cluster, "name", existing)
		if err != nil {
			return map[string]any{"error": err.Error()}
		}
		answer["infra"] = infra.Object
	}
	return answer
}

// Oracle answers a list of cases.
func Oracle(command string, input []byte) any {
	cases := []oracleDrift{}
	if err := json.Unmarshal(input, &cases); err != nil {
		panic(err)
	}
	answers := []any{}
	for _, d := range cases {
		if command == "drift" {
			answers = append(answers, d.drift())
		} else {
			answers = append(answers, d.desired())
		}
	}
	return answers
}
