// Put into the package of Cluster API's MachineHealthCheck controller: asks the functions that it does not export.
package machinehealthcheck

import (
	"encoding/json"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	v1beta1conditions "sigs.k8s.io/cluster-api/util/conditions/deprecated/v1beta1"
)

type targetCase struct {
	Cluster     clusterv1.Cluster            `json:"cluster"`
	Check       clusterv1.MachineHealthCheck `json:"check"`
	Machine     clusterv1.Machine            `json:"machine"`
	Node        *corev1.Node                 `json:"node"`
	NodeMissing bool                         `json:"nodeMissing"`
	Now         metav1.Time                  `json:"now"`
}

// OracleTarget is the verdict over one Machine.
func OracleTarget(question json.RawMessage) (any, error) {
	c := targetCase{}
	if err := json.Unmarshal(question, &c); err != nil {
		return nil, err
	}
	skipped, _ := shouldSkipRemediation(&c.Machine)
	target := healthCheckTarget{Cluster: &c.Cluster, Machine: &c.Machine, MHC: &c.Check, Node: c.Node, nodeMissing: c.NodeMissing}
	timeout := clusterv1.DefaultNodeStartupTimeoutSeconds
	if c.Check.Spec.Checks.NodeStartupTimeoutSeconds != nil {
		timeout = *c.Check.Spec.Checks.NodeStartupTimeoutSeconds
	}
	startup := metav1.Duration{Duration: time.Duration(timeout) * time.Second}
	reconciler := &Reconciler{}
	healthy, unhealthy, next := reconciler.healthCheckTargets([]healthCheckTarget{target}, logr.Discard(), c.Now.Time, startup)
	return map[string]any{
		"skipped":    skipped,
		"healthy":    len(healthy) == 1,
		"unhealthy":  len(unhealthy) == 1,
		"next":       minDuration(next).Seconds(),
		"condition":  conditions.Get(&c.Machine, clusterv1.MachineHealthCheckSucceededCondition),
		"deprecated": v1beta1conditions.Get(&c.Machine, clusterv1.MachineHealthCheckSucceededV1Beta1Condition),
	}, nil
}

// OracleAllowed is whether, and how many, Machines may be remediated.
func OracleAllowed(question json.RawMessage) (any, error) {
	check := clusterv1.MachineHealthCheck{}
	if err := json.Unmarshal(question, &check); err != nil {
		return nil, err
	}
	allowed, count, err := isAllowedRemediation(&check)
	if err != nil {
		return nil, err
	}
	return map[string]any{"allowed": allowed, "count": count}, nil
}
