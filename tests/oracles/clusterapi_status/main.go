// Asks Cluster API's own code about conditions, the status of Clusters, and the health of Machines.
//
// The subject is the argument; an array of questions on stdin, an array of {"answer": …} or {"error": …} on stdout.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"sigs.k8s.io/cluster-api/core/reconcilers/cluster"
	"sigs.k8s.io/cluster-api/core/reconcilers/machinehealthcheck"
)

type answer struct {
	Answer any    `json:"answer,omitempty"`
	Error  string `json:"error,omitempty"`
}

var subjects = map[string]func(json.RawMessage) (any, error){
	"mirror":      mirror,
	"aggregate":   aggregate,
	"summary":     summary,
	"status":      cluster.OracleStatus,
	"descendants": cluster.OracleDescendants,
	"phases":      cluster.OraclePhases,
	"target":      machinehealthcheck.OracleTarget,
	"allowed":     machinehealthcheck.OracleAllowed,
}

func main() {
	var questions []json.RawMessage
	must(json.NewDecoder(os.Stdin).Decode(&questions))
	answers := make([]answer, len(questions))
	for i, question := range questions {
		found, err := subjects[os.Args[1]](question)
		if err != nil {
			answers[i] = answer{Error: err.Error()}
		} else {
			answers[i] = answer{Answer: found}
		}
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
