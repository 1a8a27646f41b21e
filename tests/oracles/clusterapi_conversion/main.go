// Converts KubeadmConfigs and KubeadmConfigTemplates between v1beta1 and v1beta2 with Cluster API's own functions.
//
// convert: an array of objects on stdin, an array of {"object": …} or {"error": …} on stdout.
// fuzz:    objects of both versions with every field filled at random, from a fixed seed.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/randfill"

	v1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta1"
	v1beta2 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/webhooks/conversion"
)

const seed = 20260516

type answer struct {
	Object any    `json:"object,omitempty"`
	Error  string `json:"error,omitempty"`
}

func main() {
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
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func convert(raw []byte) (any, error) {
	var kind metav1.TypeMeta
	if err := json.Unmarshal(raw, &kind); err != nil {
		return nil, err
	}
	ctx := context.Background()
	there := metav1.TypeMeta{Kind: kind.Kind, APIVersion: v1beta2.GroupVersion.String()}
	if kind.APIVersion == there.APIVersion {
		there.APIVersion = v1beta1.GroupVersion.String()
	}
	switch kind.Kind + " " + kind.APIVersion {
	case "KubeadmConfig " + v1beta1.GroupVersion.String():
		src, dst := &v1beta1.KubeadmConfig{}, &v1beta2.KubeadmConfig{}
		if err := json.Unmarshal(raw, src); err != nil {
			return nil, err
		}
		err := conversion.ConvertKubeadmConfigV1Beta1ToHub(ctx, src, dst)
		dst.TypeMeta = there
		return dst, err
	case "KubeadmConfig " + v1beta2.GroupVersion.String():
		src, dst := &v1beta2.KubeadmConfig{}, &v1beta1.KubeadmConfig{}
		if err := json.Unmarshal(raw, src); err != nil {
			return nil, err
		}
		err := conversion.ConvertKubeadmConfigHubToV1Beta1(ctx, src, dst)
		dst.TypeMeta = there
		return dst, err
	case "KubeadmConfigTemplate " + v1beta1.GroupVersion.String():
		src, dst := &v1beta1.KubeadmConfigTemplate{}, &v1beta2.KubeadmConfigTemplate{}
		if err := json.Unmarshal(raw, src); err != nil {
			return nil, err
		}
		err := conversion.ConvertKubeadmConfigTemplateV1Beta1ToHub(ctx, src, dst)
		dst.TypeMeta = there
		return dst, err
	case "KubeadmConfigTemplate " + v1beta2.GroupVersion.String():
		src, dst := &v1beta2.KubeadmConfigTemplate{}, &v1beta1.KubeadmConfigTemplate{}
		if err := json.Unmarshal(raw, src); err != nil {
			return nil, err
		}
		err := conversion.ConvertKubeadmConfigTemplateHubToV1Beta1(ctx, src, dst)
		dst.TypeMeta = there
		return dst, err
	}
	return nil, fmt.Errorf("nothing to convert in a %s %s", kind.Kind, kind.APIVersion)
}

func fuzzed(count int) []any {
	funcs := func(serializer.CodecFactory) []any {
		return []any{
			func(in *v1beta1.BootstrapTokenString, _ randfill.Continue) { in.ID, in.Secret = "abcdef", "abcdef0123456789" },
			func(in *v1beta2.BootstrapTokenString, _ randfill.Continue) { in.ID, in.Secret = "abcdef", "abcdef0123456789" },
			func(in *metav1.Duration, c randfill.Continue) { in.Duration = time.Duration(c.Int31()) * time.Second },
			// null in a list is nothing that a server would take.
			func(in *v1beta1.MountPoints, c randfill.Continue) { *in = v1beta1.MountPoints{c.String(9), c.String(9)} },
			func(in *v1beta2.MountPoints, c randfill.Continue) { *in = v1beta2.MountPoints{c.String(9), c.String(9)} },
			// The server keeps these apart from the rest; only what a conversion may touch is of interest.
			func(in *metav1.ObjectMeta, c randfill.Continue) {
				in.Name, in.Namespace = "fuzzed", "default"
				c.Fill(&in.Labels)
				c.Fill(&in.Annotations)
			},
		}
	}
	filler := fuzzer.FuzzerFor(
		fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, funcs), rand.NewSource(seed), serializer.NewCodecFactory(runtime.NewScheme()),
	).NilChance(0.2).NumElements(1, 2)
	var out []any
	for range count {
		old, hub := &v1beta1.KubeadmConfig{}, &v1beta2.KubeadmConfig{}
		filler.Fill(old)
		filler.Fill(hub)
		old.TypeMeta = metav1.TypeMeta{Kind: "KubeadmConfig", APIVersion: v1beta1.GroupVersion.String()}
		hub.TypeMeta = metav1.TypeMeta{Kind: "KubeadmConfig", APIVersion: v1beta2.GroupVersion.String()}
		out = append(out, old, hub)
	}
	for range count / 3 {
		old, hub := &v1beta1.KubeadmConfigTemplate{}, &v1beta2.KubeadmConfigTemplate{}
		filler.Fill(old)
		filler.Fill(hub)
		old.TypeMeta = metav1.TypeMeta{Kind: "KubeadmConfigTemplate", APIVersion: v1beta1.GroupVersion.String()}
		hub.TypeMeta = metav1.TypeMeta{Kind: "KubeadmConfigTemplate", APIVersion: v1beta2.GroupVersion.String()}
		out = append(out, old, hub)
	}
	return out
}
