// Asks Cluster API's Machine controller about cases: a JSON list of {name, subject, case} comes in, the list of answers goes out.
//
// A time is written as {{seconds from now}}, so that a case means the same whenever it is asked.

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"sigs.k8s.io/cluster-api/core/reconcilers/machine"
	"sigs.k8s.io/cluster-api/core/reconcilers/machine/drain"
)

type question struct {
	Name    string          `json:"name"`
	Subject string          `json:"subject"`
	Case    json.RawMessage `json:"case"`
}

var moment = regexp.MustCompile(`\{\{(-?[0-9]+)\}\}`)

func ask(q question) (any, error) {
	now := time.Now().UTC().Truncate(time.Second)
	back := []string{}
	seen := map[string]bool{}
	text := moment.ReplaceAllStringFunc(string(q.Case), func(found string) string {
		seconds, _ := strconv.Atoi(found[2 : len(found)-2])
		at := now.Add(time.Duration(seconds) * time.Second).Format(time.RFC3339)
		if !seen[at] {
			seen[at] = true
			back = append(back, at, found)
		}
		return at
	})
	// What upstream dates itself is of now, or of the second that has begun since.
	for seconds := range 3 {
		at := now.Add(time.Duration(seconds) * time.Second).Format(time.RFC3339)
		if !seen[at] {
			back = append(back, at, "{{0}}")
		}
	}
	var answer any
	var err error
	if q.Subject == "drain" {
		answer, err = drain.Oracle([]byte(text))
	} else {
		answer, err = machine.Oracle(q.Subject, []byte(text))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", q.Name, err)
	}
	encoded, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}
	return json.RawMessage(strings.NewReplacer(back...).Replace(string(encoded))), nil
}

func main() {
	ctrl.SetLogger(logr.Discard())
	questions := []question{}
	if err := json.NewDecoder(os.Stdin).Decode(&questions); err != nil {
		panic(err)
	}
	answers := []any{}
	for _, q := range questions {
		answer, err := ask(q)
		if err != nil {
			panic(err)
		}
		answers = append(answers, answer)
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		panic(err)
	}
}
