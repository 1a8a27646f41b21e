// Put inside core/reconcilers/machineset of a scratch copy of Cluster API: what the MachineSet controller decides, asked case by case.
package machineset

import (
	"context"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	v1beta1conditions "sigs.k8s.io/cluster-api/util/conditions/deprecated/v1beta1"
)

// Question is one case; which of its fields count depends on the subject.
type Question struct {
	MachineSet        *clusterv1.MachineSet                       `json:"machineSet"`
	Machine           *clusterv1.Machine                          `json:"machine"`
	Machines          []*clusterv1.Machine                        `json:"machines"`
	Cluster           *clusterv1.Cluster                          `json:"cluster"`
	Objects           []*unstructured.Unstructured                `json:"objects"`
	CRDs              []*apiextensionsv1.CustomResourceDefinition `json:"crds"`
	Checks            []clusterv1.MachineSetPreflightCheck        `json:"checks"`
	Count             int                                         `json:"count"`
	BootstrapMissing  bool                                        `json:"bootstrapMissing"`
	InfraMissing      bool                                        `json:"infrastructureMissing"`
	MachinesUnknown   bool                                        `json:"machinesUnknown"`
	MachineDeployment *clusterv1.MachineDeployment                `json:"machineDeployment"`
	PreflightMessages []string                                    `json:"preflightMessages"`
}

func quiet() context.Context {
	return ctrl.LoggerInto(context.Background(), logr.Discard())
}

// DeleteOrder says which machines go first.
func DeleteOrder(q *Question) (any, error) {
	priority, err := getDeletePriorityFunc(q.MachineSet)
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, machine := range getMachinesToDeletePrioritized(q.Machines, q.Count, priority) {
		names = append(names, machine.Name)
	}
	return names, nil
}

// RemediationOrder says which machines are remediated first.
func RemediationOrder(q *Question) (any, error) {
	sortMachinesToRemediate(q.Machines)
	names := []string{}
	for _, machine := range q.Machines {
		names = append(names, machine.Name)
	}
	return names, nil
}

// Preflights runs the checks before a machine is made.
func Preflights(q *Question) (any, error) {
	scheme := runtime.NewScheme()
	_ = clusterv1.AddToScheme(scheme)
	_ = apiextensionsv1.AddToScheme(scheme)
	builder := fake.NewClientBuilder().WithScheme(scheme)
	for _, object := range q.Objects {
		builder = builder.WithObjects(object)
	}
	for _, crd := range q.CRDs {
		builder = builder.WithObjects(crd)
	}
	r := &Reconciler{Client: builder.Build(), PreflightChecks: sets.New(q.Checks...)}
	messages, err := r.runPreflightChecks(quiet(), q.Cluster, q.MachineSet, "Scale up")
	if messages == nil {
		messages = []string{}
	}
	return messages, err
}

// Status is what a MachineSet reports.
func Status(q *Question) (any, error) {
	s := &scope{
		machineSet:                   q.MachineSet,
		cluster:                      q.Cluster,
		machines:                     q.Machines,
		bootstrapObjectNotFound:      q.BootstrapMissing,
		infrastructureObjectNotFound: q.InfraMissing,
		getAndAdoptMachinesForMachineSetSucceeded: !q.MachinesUnknown,
		scaleUpPreflightCheckErrMessages:          q.PreflightMessages,
	}
	err := (&Reconciler{}).updateStatus(quiet(), s)
	return s.machineSet.Status, err
}

// DeprecatedStatus is what a MachineSet reports in yesterday's form; its machines have no Nodes yet.
func DeprecatedStatus(q *Question) (any, error) {
	s := &scope{machineSet: q.MachineSet, cluster: q.Cluster, machines: q.Machines, getAndAdoptMachinesForMachineSetSucceeded: true}
	setReplicas(quiet(), q.MachineSet, q.Machines, true)
	if err := (&Reconciler{}).reconcileV1Beta1Status(quiet(), s); err != nil {
		return nil, err
	}
	v1beta1conditions.SetSummary(q.MachineSet, v1beta1conditions.WithConditions(
		clusterv1.MachinesCreatedV1Beta1Condition, clusterv1.ResizedV1Beta1Condition, clusterv1.MachinesReadyV1Beta1Condition))
	return q.MachineSet.Status.Deprecated.V1Beta1, nil
}

// Remediation is what becomes of sick machines: what is said of each, and which are deleted.
func Remediation(q *Question) (any, error) {
	scheme := runtime.NewScheme()
	_ = clusterv1.AddToScheme(scheme)
	builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&clusterv1.Machine{})
	for _, machine := range q.Machines {
		machine.Finalizers = []string{"oracle"}
		builder = builder.WithObjects(machine)
	}
	c := builder.Build()
	s := &scope{machineSet: q.MachineSet, cluster: q.Cluster, owningMachineDeployment: q.MachineDeployment}
	for _, machine := range q.Machines {
		found := &clusterv1.Machine{}
		if err := c.Get(quiet(), client.ObjectKeyFromObject(machine), found); err != nil {
			return nil, err
		}
		s.machines = append(s.machines, found)
	}
	if _, err := (&Reconciler{Client: c}).reconcileUnhealthyMachines(quiet(), s); err != nil {
		return nil, err
	}
	answer := map[string]any{}
	for _, machine := range q.Machines {
		found := &clusterv1.Machine{}
		if err := c.Get(quiet(), client.ObjectKeyFromObject(machine), found); err != nil {
			return nil, err
		}
		said := map[string]any{"deleting": !found.DeletionTimestamp.IsZero()}
		if condition := conditions.Get(found, clusterv1.MachineOwnerRemediatedCondition); condition != nil {
			said["condition"] = condition
		}
		if condition := v1beta1conditions.Get(found, clusterv1.MachineOwnerRemediatedV1Beta1Condition); condition != nil {
			said["deprecated"] = condition
		}
		answer[machine.Name] = said
	}
	return answer, nil
}

// DesiredMachine is what a MachineSet wants of a machine.
func DesiredMachine(q *Question) (any, error) {
	return (&Reconciler{}).computeDesiredMachine(q.MachineSet, q.Machine)
}

// Requeue is when a MachineSet looks again.
func Requeue(q *Question) (any, error) {
	return shouldRequeueForReplicaCountersRefresh(&scope{machineSet: q.MachineSet}).RequeueAfter.Seconds(), nil
}
