// The oracle of CEL validation rules: what the API server of one Kubernetes release makes of a CustomResourceDefinition with rules, and
// of writes to an object of it.  It reads a list of cases from stdin and writes a list of answers.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/warning"
)

type question struct {
	Schema  json.RawMessage   `json:"schema"`
	Objects []json.RawMessage `json:"objects"`
	Olds    []json.RawMessage `json:"olds"`
}

type verdict struct {
	Errors   []string `json:"errors"`
	Warnings []string `json:"warnings"`
	Cost     int64    `json:"cost"`
}

type answer struct {
	Definition []string  `json:"definition"`
	Verdicts   []verdict `json:"verdicts"`
}

type recorder struct{ warnings []string }

func (r *recorder) AddWarning(_, text string) { r.warnings = append(r.warnings, text) }

func main() {
	var questions []question
	if err := json.NewDecoder(os.Stdin).Decode(&questions); err != nil {
		panic(err)
	}
	answers := make([]answer, 0, len(questions))
	for _, each := range questions {
		answers = append(answers, answered(each))
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(answers); err != nil {
		panic(err)
	}
}

func answered(asked question) answer {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	var properties v1.JSONSchemaProps
	if err := json.Unmarshal(asked.Schema, &properties); err != nil {
		panic(err)
	}
	versioned := &v1.CustomResourceDefinition{}
	versioned.Name = "things.example.com"
	versioned.Spec = v1.CustomResourceDefinitionSpec{
		Group: "example.com", Scope: v1.NamespaceScoped,
		Names: v1.CustomResourceDefinitionNames{Plural: "things", Kind: "Thing"},
		Versions: []v1.CustomResourceDefinitionVersion{{
			Name: "v1", Served: true, Storage: true, Schema: &v1.CustomResourceValidation{OpenAPIV3Schema: &properties},
		}},
	}
	versioned.Status.StoredVersions = []string{"v1"}
	scheme.Default(versioned)
	internal := &apiextensions.CustomResourceDefinition{}
	if err := scheme.Convert(versioned, internal, nil); err != nil {
		panic(err)
	}
	result := answer{Definition: []string{}, Verdicts: []verdict{}}
	for _, err := range validation.ValidateCustomResourceDefinition(context.Background(), internal) {
		result.Definition = append(result.Definition, err.Error())
	}
	if len(result.Definition) > 0 {
		return result
	}
	shape, err := schema.NewStructural(internal.Spec.Validation.OpenAPIV3Schema)
	if err != nil {
		panic(err)
	}
	validator := cel.NewValidator(shape, true, celconfig.PerCallLimit)
	for index, raw := range asked.Objects {
		object := decoded(raw)
		var old interface{}
		options := []cel.Option{}
		if index < len(asked.Olds) && !bytes.Equal(asked.Olds[index], []byte("null")) {
			old = decoded(asked.Olds[index])
			options = append(options, cel.WithRatcheting(common.NewCorrelatedObject(object, old, &model.Structural{Structural: shape})))
		}
		heard := &recorder{warnings: []string{}}
		errs, left := validator.Validate(warning.WithWarningRecorder(context.Background(), heard), nil, shape, object, old,
			celconfig.RuntimeCELCostBudget, options...)
		given := verdict{Errors: []string{}, Warnings: heard.warnings, Cost: celconfig.RuntimeCELCostBudget - left}
		for _, each := range errs {
			given.Errors = append(given.Errors, each.Error())
		}
		result.Verdicts = append(result.Verdicts, given)
	}
	return result
}

func decoded(raw json.RawMessage) interface{} {
	var value interface{}
	if err := utiljson.Unmarshal(raw, &value); err != nil {
		panic(err)
	}
	return value
}
