// Answers cases of the MachineSet and MachineDeployment controllers of Cluster API: a JSON list of {subject, question} becomes one of
// {answer, error}.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/component-base/featuregate"

	"sigs.k8s.io/cluster-api/core/reconcilers/machinedeployment"
	"sigs.k8s.io/cluster-api/core/reconcilers/machineset"
	"sigs.k8s.io/cluster-api/feature"
)

type asked struct {
	Subject  string          `json:"subject"`
	Question json.RawMessage `json:"question"`
}

type answered struct {
	Answer any    `json:"answer,omitempty"`
	Error  string `json:"error,omitempty"`
}

var ofSets = map[string]func(*machineset.Question) (any, error){
	"delete-order":          machineset.DeleteOrder,
	"remediation-order":     machineset.RemediationOrder,
	"preflights":            machineset.Preflights,
	"machineset-status":     machineset.Status,
	"machineset-deprecated": machineset.DeprecatedStatus,
	"remediation":           machineset.Remediation,
	"desired-machine":       machineset.DesiredMachine,
	"requeue":               machineset.Requeue,
}

var ofDeployments = map[string]func(*machinedeployment.Question) (any, error){
	"fenceposts":         machinedeployment.Fenceposts,
	"limits":             machinedeployment.Limits,
	"find":               machinedeployment.Find,
	"revision":           machinedeployment.Revision,
	"proportion":         machinedeployment.Proportion,
	"desired-machineset": machinedeployment.DesiredMachineSet,
	"deployment-status":  machinedeployment.Status,
}

func main() {
	// A Cluster with a topology is upstream's, and its MachineSets may be looked at all the same.
	if err := feature.Gates.(featuregate.MutableFeatureGate).Set("ClusterTopology=true"); err != nil {
		fail(err)
	}
	var cases []asked
	if err := json.NewDecoder(os.Stdin).Decode(&cases); err != nil {
		fail(err)
	}
	answers := []answered{}
	for _, each := range cases {
		answer, err := answer(each)
		row := answered{Answer: answer}
		if err != nil {
			row = answered{Error: err.Error()}
		}
		answers = append(answers, row)
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		fail(err)
	}
}

func answer(each asked) (any, error) {
	if f, ok := ofSets[each.Subject]; ok {
		q := &machineset.Question{}
		if err := json.Unmarshal(each.Question, q); err != nil {
			fail(err)
		}
		return f(q)
	}
	if f, ok := ofDeployments[each.Subject]; ok {
		q := &machinedeployment.Question{}
		if err := json.Unmarshal(each.Question, q); err != nil {
			fail(err)
		}
		return f(q)
	}
	return nil, fmt.Errorf("nobody answers questions about %s", each.Subject)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
