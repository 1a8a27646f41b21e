// Put into the package of Cluster API's Cluster controller: asks the functions that it does not export.
package cluster

import (
	"context"
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/util/collections"
)

// Times that count are ages in seconds: the functions look at the clock.
type statusCase struct {
	Cluster              clusterv1.Cluster             `json:"cluster"`
	Infrastructure       map[string]any                `json:"infrastructure"`
	InfrastructureGone   bool                          `json:"infrastructureGone"`
	ControlPlane         map[string]any                `json:"controlPlane"`
	ControlPlaneGone     bool                          `json:"controlPlaneGone"`
	ControlPlaneContract string                        `json:"controlPlaneContract"`
	MachineDeployments   []clusterv1.MachineDeployment `json:"machineDeployments"`
	MachineSets          []clusterv1.MachineSet        `json:"machineSets"`
	MachinePools         []clusterv1.MachinePool       `json:"machinePools"`
	Machines             []clusterv1.Machine           `json:"machines"`
	Ages                 map[string]int                `json:"ages"`
	ListFailed           bool                          `json:"listFailed"`
	Probe                struct {
		SucceededAgo *int `json:"succeededAgo"`
		Failures     int  `json:"failures"`
	} `json:"probe"`
	Deleting []string `json:"deleting"`
}

func unstructuredOf(found map[string]any) *unstructured.Unstructured {
	if found == nil {
		return nil
	}
	raw, err := json.Marshal(found)
	if err != nil {
		panic(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(raw); err != nil {
		panic(err)
	}
	return object
}

func (c *statusCase) descendants(now time.Time) clusterDescendants {
	found := clusterDescendants{}
	found.machineDeployments.Items = c.MachineDeployments
	found.machineSets.Items = c.MachineSets
	found.machinePools.Items = c.MachinePools
	list := &clusterv1.MachineList{Items: c.Machines}
	for i := range list.Items {
		if age, ok := c.Ages[list.Items[i].Name]; ok {
			list.Items[i].CreationTimestamp = metav1.NewTime(now.Add(-time.Duration(age) * time.Second))
		}
	}
	found.allMachines = collections.FromMachineList(list)
	found.controlPlaneMachines = found.allMachines.Filter(collections.ControlPlaneMachines(c.Cluster.Name))
	found.workerMachines = found.allMachines.Difference(found.controlPlaneMachines)
	found.machinesToBeRemediated = found.allMachines.Filter(collections.IsUnhealthyAndOwnerRemediated)
	found.unhealthyMachines = found.allMachines.Filter(collections.IsUnhealthy)
	return found
}

// OracleStatus is the status of a Cluster of what was found.
func OracleStatus(question json.RawMessage) (any, error) {
	c := statusCase{}
	if err := json.Unmarshal(question, &c); err != nil {
		return nil, err
	}
	ctx, now, cluster := context.Background(), time.Now(), &c.Cluster
	infrastructure, controlPlane := unstructuredOf(c.Infrastructure), unstructuredOf(c.ControlPlane)
	d, listed := c.descendants(now), !c.ListFailed
	state := clustercache.HealthCheckingState{ConsecutiveFailures: c.Probe.Failures}
	if c.Probe.SucceededAgo != nil {
		state.LastProbeSuccessTime = now.Add(-time.Duration(*c.Probe.SucceededAgo) * time.Second)
	}
	reason, message := "", ""
	if len(c.Deleting) == 2 {
		reason, message = c.Deleting[0], c.Deleting[1]
	}
	none := clusterv1.MachinePoolList{}
	setPhase(ctx, cluster)
	setControlPlaneReplicas(ctx, cluster, controlPlane, c.ControlPlaneContract, d.controlPlaneMachines, c.ControlPlaneGone, listed)
	setWorkersReplicas(ctx, cluster, d.machinePools, d.machineDeployments, d.machineSets, d.workerMachines, listed)
	setRemoteConnectionProbeCondition(ctx, cluster, state, 50*time.Second)
	setInfrastructureReadyCondition(ctx, cluster, infrastructure, c.InfrastructureGone)
	setControlPlaneAvailableCondition(ctx, cluster, controlPlane, c.ControlPlaneGone)
	setControlPlaneInitializedCondition(ctx, cluster, controlPlane, c.ControlPlaneContract, d.controlPlaneMachines, c.ControlPlaneGone, listed)
	setWorkersAvailableCondition(ctx, cluster, none, d.machineDeployments, listed)
	setControlPlaneMachinesReadyCondition(ctx, cluster, d.controlPlaneMachines, listed)
	setWorkerMachinesReadyCondition(ctx, cluster, d.workerMachines, listed)
	setControlPlaneMachinesUpToDateCondition(ctx, cluster, d.controlPlaneMachines, listed)
	setWorkerMachinesUpToDateCondition(ctx, cluster, d.workerMachines, listed)
	setRollingOutCondition(ctx, cluster, controlPlane, none, d.machineDeployments, c.ControlPlaneGone, listed)
	setScalingUpCondition(ctx, cluster, controlPlane, none, d.machineDeployments, d.machineSets, c.ControlPlaneGone, listed)
	setScalingDownCondition(ctx, cluster, controlPlane, none, d.machineDeployments, d.machineSets, c.ControlPlaneGone, listed)
	setRemediatingCondition(ctx, cluster, d.machinesToBeRemediated, d.unhealthyMachines, listed)
	setDeletingCondition(ctx, cluster, reason, message)
	setAvailableCondition(ctx, cluster, nil)
	return cluster.Status, nil
}

// OracleDescendants is what a deletion begins with, in its order, and what it waits for.
func OracleDescendants(question json.RawMessage) (any, error) {
	c := statusCase{}
	if err := json.Unmarshal(question, &c); err != nil {
		return nil, err
	}
	d := c.descendants(time.Now())
	owned, err := d.filterOwnedDescendants(&c.Cluster)
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, object := range owned {
		names = append(names, object.GetName())
	}
	return map[string]any{
		"owned":   names,
		"pending": d.objectsPendingDeleteCount(&c.Cluster),
		"names":   d.objectsPendingDeleteNames(&c.Cluster),
	}, nil
}
