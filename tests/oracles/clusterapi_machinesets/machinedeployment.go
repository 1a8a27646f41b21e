// Put inside core/reconcilers/machinedeployment of a scratch copy of Cluster API: what the MachineDeployment controller decides.
package machinedeployment

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	intstrutil "k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/core/reconcilers/machinedeployment/mdutil"
	"sigs.k8s.io/cluster-api/util/collections"
	v1beta1conditions "sigs.k8s.io/cluster-api/util/conditions/deprecated/v1beta1"
)

// Question is one case; which of its fields count depends on the subject.
type Question struct {
	MachineDeployment *clusterv1.MachineDeployment `json:"machineDeployment"`
	MachineSet        *clusterv1.MachineSet        `json:"machineSet"`
	MachineSets       []*clusterv1.MachineSet      `json:"machineSets"`
	Machines          []*clusterv1.Machine         `json:"machines"`
	Time              *metav1.Time                 `json:"time"`
	MaxSurge          *intstrutil.IntOrString      `json:"maxSurge"`
	MaxUnavailable    *intstrutil.IntOrString      `json:"maxUnavailable"`
	Replicas          int32                        `json:"replicas"`
	ToAdd             int32                        `json:"toAdd"`
	Added             int32                        `json:"added"`
	BootstrapMissing  bool                         `json:"bootstrapMissing"`
	InfraMissing      bool                         `json:"infrastructureMissing"`
	SetsUnknown       bool                         `json:"machineSetsUnknown"`
}

func quiet() context.Context {
	return ctrl.LoggerInto(context.Background(), logr.Discard())
}

// Fenceposts resolves maxSurge and maxUnavailable.
func Fenceposts(q *Question) (any, error) {
	surge, unavailable, err := mdutil.ResolveFenceposts(q.MaxSurge, q.MaxUnavailable, q.Replicas)
	return []int32{surge, unavailable}, err
}

// Limits are the surge and the unavailability of a MachineDeployment.
func Limits(q *Question) (any, error) {
	return []int32{mdutil.MaxSurge(*q.MachineDeployment), mdutil.MaxUnavailable(*q.MachineDeployment)}, nil
}

// Find tells the MachineSet of today's template from the others.
func Find(q *Question) (any, error) {
	now := metav1.NewTime(time.Now())
	if q.Time != nil {
		now = *q.Time
	}
	current, old, results, reason := mdutil.FindNewAndOldMachineSets(q.MachineDeployment, q.MachineSets, now)
	answer := map[string]any{"reason": reason}
	if current != nil {
		answer["new"] = current.Name
	}
	names := []string{}
	messages := map[string][]string{}
	for _, each := range old {
		names = append(names, each.Name)
	}
	for name, result := range results {
		if len(result.ConditionMessages) > 0 {
			messages[name] = result.ConditionMessages
		}
	}
	answer["old"], answer["messages"] = names, messages
	return answer, nil
}

// Revision is what a MachineSet is numbered with.
func Revision(q *Question) (any, error) {
	annotations, revision, err := mdutil.ComputeRevisionAnnotations(quiet(), q.MachineSet, q.MachineSets)
	return map[string]any{"annotations": annotations, "revision": revision}, err
}

// Proportion is the share of a MachineSet in a change of a paused MachineDeployment.
func Proportion(q *Question) (any, error) {
	return mdutil.GetProportion(q.MachineSet, *q.MachineDeployment, q.ToAdd, q.Added, logr.Discard()), nil
}

// DesiredMachineSet is what a MachineDeployment wants of a MachineSet.
func DesiredMachineSet(q *Question) (any, error) {
	p := newRolloutPlanner(nil, nil, nil)
	p.md = q.MachineDeployment
	p.oldMSs = q.MachineSets
	return p.computeDesiredNewMS(quiet(), q.MachineSet)
}

// Status is what a MachineDeployment reports.
func Status(q *Question) (any, error) {
	r := &Reconciler{}
	s := &scope{
		machineDeployment:              q.MachineDeployment,
		machineSets:                    q.MachineSets,
		machines:                       collections.FromMachines(q.Machines...),
		bootstrapTemplateNotFound:      q.BootstrapMissing,
		infrastructureTemplateNotFound: q.InfraMissing,
		getAndAdoptMachineSetsForDeploymentSucceeded: !q.SetsUnknown,
	}
	if !q.SetsUnknown && q.MachineDeployment.DeletionTimestamp == nil && q.MachineDeployment.Spec.Replicas != nil {
		if err := r.syncDeploymentStatus(q.MachineSets, q.MachineSet, q.MachineDeployment); err != nil {
			return nil, err
		}
		v1beta1conditions.SetSummary(q.MachineDeployment, v1beta1conditions.WithConditions(clusterv1.MachineDeploymentAvailableV1Beta1Condition))
	}
	err := r.updateStatus(quiet(), s)
	return s.machineDeployment.Status, err
}
