package main

import (
	"encoding/json"
	"fmt"
	"os"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"
)

type patchCase struct {
	Type     string `json:"type"`
	Kind     string `json:"kind"`
	Original string `json:"original"`
	Patch    string `json:"patch"`
}

// patch applies each case as kubeadm's patch manager does, without its file handling.
func patch() (any, error) {
	var cases []patchCase
	if err := json.NewDecoder(os.Stdin).Decode(&cases); err != nil {
		return nil, err
	}
	outcomes := []outcome{}
	for _, item := range cases {
		value, err := apply(item)
		if err != nil {
			outcomes = append(outcomes, outcome{Error: err.Error()})
			continue
		}
		outcomes = append(outcomes, outcome{Value: value})
	}
	return outcomes, nil
}

func apply(item patchCase) (result []byte, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			result, err = nil, fmt.Errorf("panic: %v", cause)
		}
	}()
	original, err := yaml.YAMLToJSON([]byte(item.Original))
	if err != nil {
		return nil, err
	}
	patch, err := yaml.YAMLToJSON([]byte(item.Patch))
	if err != nil {
		return nil, err
	}
	switch item.Type {
	case "json":
		operations, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			return nil, err
		}
		return operations.Apply(original)
	case "merge":
		return jsonpatch.MergePatch(original, patch)
	case "strategic":
		prototype, err := root(item.Kind)
		if err != nil {
			return nil, err
		}
		return strategicpatch.StrategicMergePatch(original, patch, prototype)
	}
	return nil, fmt.Errorf("unknown patch type %q", item.Type)
}
