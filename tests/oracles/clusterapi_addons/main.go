// The oracle of ClusterResourceSets: a list of questions on stdin, a list of answers on stdout.
package main

import (
	"context"
	"encoding/json"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	"sigs.k8s.io/cluster-api/core/reconcilers/clusterresourceset"
	"sigs.k8s.io/cluster-api/core/webhooks/admission"
)

type question struct {
	Resource map[string]any                      `json:"resource,omitempty"`
	Set      *addonsv1.ClusterResourceSet        `json:"set,omitempty"`
	Old      *addonsv1.ClusterResourceSet        `json:"old,omitempty"`
	Binding  *addonsv1.ClusterResourceSetBinding `json:"binding,omitempty"`
	Before   *addonsv1.ClusterResourceSetBinding `json:"before,omitempty"`
	Ref      *addonsv1.ResourceRef               `json:"ref,omitempty"`
	Hash     string                              `json:"hash,omitempty"`
}

func main() {
	var questions []question
	must(json.NewDecoder(os.Stdin).Decode(&questions))
	answers := make([]map[string]any, 0, len(questions))
	for _, each := range questions {
		answers = append(answers, answered(each))
	}
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	must(out.Encode(answers))
}

func answered(asked question) map[string]any {
	ctx := context.Background()
	switch {
	case asked.Resource != nil:
		hash, objects, err := clusterresourceset.Content(&unstructured.Unstructured{Object: asked.Resource})
		if err != nil {
			return map[string]any{"refused": true}
		}
		names := []string{}
		for _, each := range objects {
			names = append(names, each.GetKind()+"/"+each.GetName())
		}
		return map[string]any{"hash": hash, "objects": names}
	case asked.Ref != nil:
		needs, err := clusterresourceset.NeedsApply(asked.Set, *asked.Ref, asked.Binding, asked.Hash)
		must(err)
		return map[string]any{"needs": needs}
	case asked.Set != nil:
		webhook := &admission.ClusterResourceSet{}
		must(webhook.Default(ctx, asked.Set))
		strategy := asked.Set.Spec.Strategy
		var err error
		if asked.Old != nil {
			_, err = webhook.ValidateUpdate(ctx, asked.Old, asked.Set)
		} else {
			_, err = webhook.ValidateCreate(ctx, asked.Set)
		}
		return map[string]any{"strategy": strategy, "error": text(err)}
	default:
		webhook := &admission.ClusterResourceSetBinding{}
		var err error
		if asked.Before != nil {
			_, err = webhook.ValidateUpdate(ctx, asked.Before, asked.Binding)
		} else {
			_, err = webhook.ValidateCreate(ctx, asked.Binding)
		}
		return map[string]any{"error": text(err)}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
