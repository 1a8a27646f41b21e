// Asks Cluster API's own webhooks: an array of requests on stdin, an array of answers on stdout.
//
// A request has a kind, an object and perhaps an old one; the object is defaulted, as the API server has it done, and then validated.
// With the subresource "scale" the object is the KubeadmControlPlane and the request asks for "replicas".
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"unsafe"

	admissionv1 "k8s.io/api/admission/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	controlplane "sigs.k8s.io/cluster-api/controlplane/kubeadm/webhooks/admission"
	core "sigs.k8s.io/cluster-api/core/webhooks/admission"
	"sigs.k8s.io/cluster-api/feature"
)

type question struct {
	Kind        string          `json:"kind"`
	Subresource string          `json:"subresource"`
	Replicas    int32           `json:"replicas"`
	Object      json.RawMessage `json:"object"`
	Old         json.RawMessage `json:"old"`
}

type cause struct {
	Field   string `json:"field"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

type answer struct {
	Allowed   bool     `json:"allowed"`
	Causes    []cause  `json:"causes,omitempty"`
	Error     string   `json:"error,omitempty"`
	Warnings  []string `json:"warnings,omitempty"`
	Defaulted any      `json:"defaulted,omitempty"`
}

var scheme = runtime.NewScheme()

func main() {
	must(clusterv1.AddToScheme(scheme))
	must(controlplanev1.AddToScheme(scheme))
	must(autoscalingv1.AddToScheme(scheme))
	// What is behind a gate there is always there here.
	must(feature.MutableGates.SetFromMap(map[string]bool{
		"ClusterTopology": true, "KubeadmBootstrapFormatIgnition": true, "MachineTaintPropagation": true,
	}))
	var questions []question
	must(json.NewDecoder(os.Stdin).Decode(&questions))
	answers := make([]answer, len(questions))
	for i, question := range questions {
		answers[i] = ask(question)
	}
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	must(out.Encode(answers))
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func ask(q question) answer {
	decoder := admission.NewDecoder(scheme)
	if q.Subresource == "scale" {
		return scaled(q, decoder)
	}
	switch q.Kind {
	case "Cluster":
		return judged(q, &clusterv1.Cluster{}, &clusterv1.Cluster{}, with(&core.Cluster{}, decoder))
	case "Machine":
		return judged(q, &clusterv1.Machine{}, &clusterv1.Machine{}, &core.Machine{})
	case "MachineSet":
		return judged(q, &clusterv1.MachineSet{}, &clusterv1.MachineSet{}, with(&core.MachineSet{}, decoder))
	case "MachineDeployment":
		return judged(q, &clusterv1.MachineDeployment{}, &clusterv1.MachineDeployment{}, with(&core.MachineDeployment{}, decoder))
	case "MachineHealthCheck":
		return judged(q, &clusterv1.MachineHealthCheck{}, &clusterv1.MachineHealthCheck{}, &core.MachineHealthCheck{})
	case "MachineDrainRule":
		return judged(q, &clusterv1.MachineDrainRule{}, &clusterv1.MachineDrainRule{}, &core.MachineDrainRule{})
	case "KubeadmControlPlane":
		return judged(q, &controlplanev1.KubeadmControlPlane{}, &controlplanev1.KubeadmControlPlane{}, &controlplane.KubeadmControlPlane{})
	case "KubeadmControlPlaneTemplate":
		return judged(
			q, &controlplanev1.KubeadmControlPlaneTemplate{}, &controlplanev1.KubeadmControlPlaneTemplate{},
			&controlplane.KubeadmControlPlaneTemplate{},
		)
	}
	return answer{Error: "no webhook for " + q.Kind}
}

// The decoder of a webhook is set by its manager, which there is none of here.
func with[T any](webhook *T, decoder admission.Decoder) *T {
	place := reflect.ValueOf(webhook).Elem().FieldByName("decoder")
	reflect.NewAt(place.Type(), unsafe.Pointer(place.UnsafeAddr())).Elem().Set(reflect.ValueOf(decoder))
	return webhook
}

func judged[T client.Object](q question, object, old T, webhook admission.Validator[T]) answer {
	if err := json.Unmarshal(q.Object, object); err != nil {
		return answer{Error: err.Error()}
	}
	isUpdate := len(q.Old) > 0 && string(q.Old) != "null"
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create}}
	if isUpdate {
		request.Operation = admissionv1.Update
		request.OldObject = runtime.RawExtension{Raw: q.Old}
		if err := json.Unmarshal(q.Old, old); err != nil {
			return answer{Error: err.Error()}
		}
	}
	ctx := admission.NewContextWithRequest(context.Background(), request)
	if defaulter, ok := webhook.(admission.Defaulter[T]); ok {
		if err := defaulter.Default(ctx, object); err != nil {
			return answer{Error: err.Error()}
		}
	}
	out := answer{Defaulted: object.DeepCopyObject()}
	var warnings admission.Warnings
	var err error
	if isUpdate {
		warnings, err = webhook.ValidateUpdate(ctx, old, object)
	} else {
		warnings, err = webhook.ValidateCreate(ctx, object)
	}
	out.Warnings, out.Allowed, out.Causes = warnings, err == nil, causes(err)
	return out
}

func causes(err error) []cause {
	var found []cause
	var status apierrors.APIStatus
	var one *field.Error
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, each := range status.Status().Details.Causes {
			found = append(found, cause{each.Field, string(each.Type), each.Message})
		}
	} else if errors.As(err, &one) {
		found = append(found, cause{one.Field, string(one.Type), one.ErrorBody()})
	}
	return found
}

func scaled(q question, decoder admission.Decoder) answer {
	plane := &controlplanev1.KubeadmControlPlane{}
	if err := json.Unmarshal(q.Object, plane); err != nil {
		return answer{Error: err.Error()}
	}
	scale := &autoscalingv1.Scale{
		TypeMeta:   metav1.TypeMeta{APIVersion: "autoscaling/v1", Kind: "Scale"},
		ObjectMeta: metav1.ObjectMeta{Name: plane.Name, Namespace: plane.Namespace},
		Spec:       autoscalingv1.ScaleSpec{Replicas: q.Replicas},
	}
	raw, err := json.Marshal(scale)
	must(err)
	webhook := with(&controlplane.ScaleValidator{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(plane).Build()}, decoder)
	response := webhook.Handle(context.Background(), admission.Request{
		AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Update, Object: runtime.RawExtension{Raw: raw}},
	})
	out := answer{Allowed: response.Allowed}
	if !response.Allowed {
		out.Causes = []cause{{Message: response.Result.Message, Reason: string(response.Result.Reason)}}
	}
	return out
}
