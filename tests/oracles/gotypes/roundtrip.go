package main

import (
	"encoding/json"
	"os"
	"reflect"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

type document struct {
	Kind string `json:"kind"`
	YAML string `json:"yaml"`
}

type outcome struct {
	Value  json.RawMessage `json:"value,omitempty"`
	YAML   string          `json:"yaml,omitempty"`
	Strict []string        `json:"strict,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// roundtrip decodes as apimachinery's serializers do (case-sensitive, integers kept, strict errors beside the value).
func roundtrip() (any, error) {
	var documents []document
	if err := json.NewDecoder(os.Stdin).Decode(&documents); err != nil {
		return nil, err
	}
	outcomes := []outcome{}
	for _, document := range documents {
		prototype, err := root(document.Kind)
		if err != nil {
			return nil, err
		}
		outcomes = append(outcomes, one(document.YAML, prototype))
	}
	return outcomes, nil
}

func one(text string, prototype any) outcome {
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return outcome{Error: err.Error()}
	}
	object := reflect.New(reflect.TypeOf(prototype)).Interface()
	strict, err := kjson.UnmarshalStrict(data, object)
	if err != nil {
		return outcome{Error: err.Error()}
	}
	written, err := json.Marshal(object)
	if err != nil {
		return outcome{Error: err.Error()}
	}
	text2, err := yaml.JSONToYAML(written)
	if err != nil {
		return outcome{Error: err.Error()}
	}
	result := outcome{Value: written, YAML: string(text2)}
	for _, problem := range strict {
		result.Strict = append(result.Strict, problem.Error())
	}
	return result
}
