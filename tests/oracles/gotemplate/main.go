// Executes templates with Go's text/template: one case a line in, one answer a line out.
package main

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"text/template"
)

type question struct {
	Name       string
	Text       string
	Data       any
	MissingKey string
}

type answer struct {
	Output *string `json:"output,omitempty"`
	Stage  string  `json:"stage,omitempty"`
	Error  string  `json:"error,omitempty"`
}

// numbers gives the data the types that Kubernetes' own JSON decoder would give it.
func numbers(value any) any {
	switch value := value.(type) {
	case json.Number:
		if whole, err := value.Int64(); err == nil {
			return whole
		}
		float, _ := value.Float64()
		return float
	case map[string]any:
		for key := range value {
			value[key] = numbers(value[key])
		}
	case []any:
		for position := range value {
			value[position] = numbers(value[position])
		}
	}
	return value
}

func answerTo(asked question) answer {
	parsed, err := template.New(asked.Name).Option("missingkey=" + asked.MissingKey).Parse(asked.Text)
	if err != nil {
		return answer{Stage: "parse", Error: err.Error()}
	}
	var out strings.Builder
	if err := parsed.Execute(&out, numbers(asked.Data)); err != nil {
		return answer{Stage: "execute", Error: err.Error()}
	}
	text := out.String()
	return answer{Output: &text}
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<24)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for in.Scan() {
		decoder := json.NewDecoder(strings.NewReader(in.Text()))
		decoder.UseNumber()
		var asked question
		if err := decoder.Decode(&asked); err != nil {
			panic(err)
		}
		if err := out.Encode(answerTo(asked)); err != nil {
			panic(err)
		}
	}
}
