// Records what Go makes of YAML, durations, quantities, versions and field errors, for tests that run without Go.
//
//	go run . CASES GOLDEN
//
// CASES holds lists of inputs as JSON; GOLDEN gets files of the same names with the results and the versions of the modules that
// gave them.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

type document struct {
	// JSON is text, so that the form of numbers is kept.
	JSON string `json:"json"`
	// Strict is the error of strict reading: duplicate keys.
	Strict string `json:"strict,omitempty"`
}

type loaded struct {
	YAML      string     `json:"yaml"`
	Documents []document `json:"documents"`
	Error     string     `json:"error,omitempty"`
}

// load reads a file as kubeadm does: split by lines of ---, then each document on its own.
func load(text string) loaded {
	result := loaded{YAML: text, Documents: []document{}}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewBufferString(text)))
	for {
		chunk, err := reader.Read()
		if err == io.EOF {
			return result
		}
		var converted []byte
		if err == nil {
			converted, err = yaml.YAMLToJSON(chunk)
		}
		if err != nil {
			result.Error = err.Error()
			return result
		}
		one := document{JSON: string(converted)}
		if _, err := yaml.YAMLToJSONStrict(chunk); err != nil {
			one.Strict = err.Error()
		}
		result.Documents = append(result.Documents, one)
	}
}

type dumped struct {
	JSON  string `json:"json"`
	YAML  string `json:"yaml"`
	Error string `json:"error,omitempty"`
}

func dump(raw json.RawMessage) dumped {
	// json.Marshal of the value is what sigs.k8s.io/yaml starts from; it escapes differently than the case's own text.
	var value any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	must(decoder.Decode(&value))
	value = withFloats(value)
	result := dumped{JSON: string(raw)}
	text, err := yaml.Marshal(value)
	if err != nil {
		result.Error = err.Error()
	}
	result.YAML = string(text)
	return result
}

// withFloats turns the numbers that are not written as integers into float64, as they are in Go's types.
func withFloats(value any) any {
	switch typed := value.(type) {
	case json.Number:
		if strings.ContainsAny(typed.String(), ".eE") {
			number, err := typed.Float64()
			must(err)
			return number
		}
	case []any:
		for index := range typed {
			typed[index] = withFloats(typed[index])
		}
	case map[string]any:
		for key := range typed {
			typed[key] = withFloats(typed[key])
		}
	}
	return value
}

type duration struct {
	Text        string `json:"text"`
	Nanoseconds int64  `json:"nanoseconds"`
	Canonical   string `json:"canonical,omitempty"`
	Error       string `json:"error,omitempty"`
}

func parseDuration(text string) duration {
	value, err := time.ParseDuration(text)
	if err != nil {
		return duration{Text: text, Error: err.Error()}
	}
	return duration{Text: text, Nanoseconds: int64(value), Canonical: value.String()}
}

type quantity struct {
	Text      string `json:"text"`
	Canonical string `json:"canonical,omitempty"`
	Error     string `json:"error,omitempty"`
}

func parseQuantity(text string) quantity {
	value, err := resource.ParseQuantity(text)
	if err != nil {
		return quantity{Text: text, Error: err.Error()}
	}
	return quantity{Text: text, Canonical: value.String()}
}

type versions struct {
	Texts []string `json:"texts"`
	// Canonical has a text for each version; an empty one is not a version.
	Canonical []string `json:"canonical"`
	// Compare is -1, 0 or 1, if both are versions.
	Compare *int `json:"compare,omitempty"`
}

func compareVersions(texts [2]string) versions {
	result := versions{Texts: texts[:], Canonical: []string{"", ""}}
	first, firstErr := version.ParseSemantic(texts[0])
	second, secondErr := version.ParseSemantic(texts[1])
	if firstErr == nil {
		result.Canonical[0] = first.String()
	}
	if secondErr == nil {
		result.Canonical[1] = second.String()
	}
	if firstErr == nil && secondErr == nil {
		order, err := first.Compare(texts[1])
		must(err)
		result.Compare = &order
	}
	return result
}

type fieldError struct {
	Fault string `json:"fault"`
	// Path holds names, list indices (numbers) and map keys (lists of one).
	Path    []any    `json:"path"`
	Value   any      `json:"value"`
	Detail  string   `json:"detail"`
	Allowed []string `json:"allowed,omitempty"`
	Text    string   `json:"text"`
}

func fieldErrorText(one fieldError) fieldError {
	var path *field.Path
	for _, step := range one.Path {
		switch typed := step.(type) {
		case string:
			path = path.Child(typed)
		case float64:
			path = path.Index(int(typed))
		case []any:
			path = path.Key(typed[0].(string))
		}
	}
	value := one.Value
	if number, ok := value.(float64); ok {
		value = int(number)
	}
	switch one.Fault {
	case "required":
		one.Text = field.Required(path, one.Detail).Error()
	case "forbidden":
		one.Text = field.Forbidden(path, one.Detail).Error()
	case "duplicate":
		one.Text = field.Duplicate(path, value).Error()
	case "not_supported":
		one.Text = field.NotSupported(path, value, one.Allowed).Error()
	default:
		one.Text = field.Invalid(path, value, one.Detail).Error()
	}
	return one
}

func record[Case, Result any](cases, golden, name string, run func(Case) Result) {
	text, err := os.ReadFile(filepath.Join(cases, name))
	must(err)
	var inputs []Case
	must(json.Unmarshal(text, &inputs))
	results := make([]Result, 0, len(inputs))
	for _, input := range inputs {
		results = append(results, run(input))
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	must(encoder.Encode(map[string]any{"versions": moduleVersions(), "cases": results}))
	must(os.WriteFile(filepath.Join(golden, name), out.Bytes(), 0o644))
}

func moduleVersions() map[string]string {
	found := map[string]string{"go": runtime.Version()}
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		switch module.Path {
		case "k8s.io/apimachinery", "sigs.k8s.io/yaml", "go.yaml.in/yaml/v2":
			found[module.Path] = module.Version
		}
	}
	return found
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: go run . CASES GOLDEN")
		os.Exit(2)
	}
	cases, golden := os.Args[1], os.Args[2]
	record(cases, golden, "load.json", load)
	record(cases, golden, "dump.json", dump)
	record(cases, golden, "durations.json", parseDuration)
	record(cases, golden, "quantities.json", parseQuantity)
	record(cases, golden, "versions.json", compareVersions)
	record(cases, golden, "fielderrors.json", fieldErrorText)
}
