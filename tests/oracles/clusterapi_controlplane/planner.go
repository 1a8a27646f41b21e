// What Cluster API's controller of control planes would do with a control plane that a case describes.
// The recorder puts this file into the package of that controller, so that it reaches what is not exported.
package kubeadmcontrolplane

import (
	"context"
	"encoding/json"
	"sort"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"k8s.io/apimachinery/pkg/util/intstr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/pkg"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/pkg/etcd"
	"sigs.k8s.io/cluster-api/util/collections"
	"sigs.k8s.io/cluster-api/util/conditions"
	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"
)

type oracleRemediation struct {
	Machine string `json:"machine"`
	Ago     *int   `json:"ago"`
	Retries int    `json:"retries"`
}

type oracleMachine struct {
	Name           string               `json:"name"`
	Age            int                  `json:"age"`
	Version        string               `json:"version"`
	Kubelet        string               `json:"kubelet"`
	Outdated       bool                 `json:"outdated"`
	Domain         string               `json:"domain"`
	Node           string               `json:"node"`
	NodeAge        int                  `json:"nodeAge"`
	Checks         map[string][2]string `json:"checks"`
	Others         map[string][3]string `json:"others"`
	Since          int                  `json:"since"`
	DeletedAgo     *int                 `json:"deletedAgo"`
	NoHook         bool                 `json:"noHook"`
	OtherHooks     bool                 `json:"otherHooks"`
	WaitsForHook   bool                 `json:"waitsForHook"`
	DeleteAsked    bool                 `json:"deleteAsked"`
	RemediateAsked bool                 `json:"remediateAsked"`
	Unhealthy      bool                 `json:"unhealthy"`
	Ours           bool                 `json:"ours"`
	HealthChecked  bool                 `json:"healthChecked"`
	Replaces       *oracleRemediation   `json:"replaces"`
	NoProviderID   bool                 `json:"noProviderID"`
}

type oracleMember struct {
	ID      uint64 `json:"id"`
	Name    string `json:"name"`
	Learner bool   `json:"learner"`
	Alarms  bool   `json:"alarms"`
	Leader  bool   `json:"leader"`
}

type oracleCase struct {
	Replicas         int32              `json:"replicas"`
	MaxSurge         *int               `json:"maxSurge"`
	Version          string             `json:"version"`
	Domains          []string           `json:"domains"`
	ExternalEtcd     bool               `json:"externalEtcd"`
	Members          []oracleMember     `json:"members"`
	MembersHealthy   bool               `json:"membersHealthy"`
	MembersMatch     bool               `json:"membersMatch"`
	Uninitialized    bool               `json:"uninitialized"`
	InitializedAgo   int                `json:"initializedAgo"`
	NoCertificates   bool               `json:"noCertificates"`
	InProgress       *oracleRemediation `json:"inProgress"`
	MaxRetry         *int32             `json:"maxRetry"`
	RetryPeriod      *int32             `json:"retryPeriod"`
	MinHealthyPeriod *int32             `json:"minHealthyPeriod"`
	Deleting         bool               `json:"deleting"`
	TemplateMissing  bool               `json:"templateMissing"`
	Machines         []oracleMachine    `json:"machines"`
}

type oracleAnswer struct {
	Step     string   `json:"step"`
	Machine  string   `json:"machine,omitempty"`
	Member   *uint64  `json:"member,omitempty"`
	Leader   string   `json:"leader,omitempty"`
	Domains  []string `json:"domains,omitempty"`
	Retries  *int     `json:"retries,omitempty"`
	Seconds  float64  `json:"seconds,omitempty"`
	Blocked  []string `json:"blocked,omitempty"`
	Problems []string `json:"problems,omitempty"`
	Error    string   `json:"error,omitempty"`
	Verdict  []string `json:"verdict,omitempty"`
	Older    []string `json:"older,omitempty"`
}

type oracleWorkload struct {
	pkg.WorkloadCluster
	leader  string
	removed *etcd.Member
}

func (w *oracleWorkload) ForwardEtcdLeadership(_ context.Context, _, to string) error {
	w.leader = to
	return nil
}

func (w *oracleWorkload) RemoveEtcdMember(_ context.Context, member *etcd.Member, _ []*pkg.Node) error {
	w.removed = member
	return nil
}

type oracleManagement struct {
	pkg.ManagementCluster
	workload pkg.WorkloadCluster
}

func (m *oracleManagement) GetWorkloadCluster(context.Context, *clusterv1.Cluster, bootstrapv1.EncryptionAlgorithmType) (pkg.WorkloadCluster, error) {
	return m.workload, nil
}

type oracleDeletes struct{ deleted string }

func (d *oracleDeletes) Delete(_ context.Context, obj client.Object, _ ...client.DeleteOption) (client.Object, error) {
	d.deleted = obj.GetName()
	return nil, nil
}

// The API has times in whole seconds.
var oracleNow = time.Now().Truncate(time.Second)

func oracleAgo(seconds int) metav1.Time {
	return metav1.Time{Time: oracleNow.Add(-time.Duration(seconds) * time.Second)}
}

func (r *oracleRemediation) text() string {
	data := RemediationData{Machine: r.Machine, RetryCount: r.Retries}
	if r.Ago != nil {
		data.Timestamp = metav1.Time{Time: oracleAgo(*r.Ago).UTC()}
	}
	text, err := data.Marshal()
	if err != nil {
		panic(err)
	}
	return text
}

func (m oracleMachine) object() *clusterv1.Machine {
	annotations := map[string]string{}
	if !m.NoHook {
		annotations[controlplanev1.PreTerminateHookCleanupAnnotation] = ""
	}
	if m.OtherHooks {
		annotations[clusterv1.PreTerminateDeleteHookAnnotationPrefix+"/other"] = ""
	}
	if m.DeleteAsked {
		annotations[clusterv1.DeleteMachineAnnotation] = ""
	}
	if m.RemediateAsked {
		annotations[clusterv1.RemediateMachineAnnotation] = ""
	}
	if m.Replaces != nil {
		annotations[controlplanev1.RemediationForAnnotation] = m.Replaces.text()
	}
	made := &clusterv1.Machine{
		TypeMeta: metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine"},
		ObjectMeta: metav1.ObjectMeta{
			Name: m.Name, Namespace: "n", UID: types.UID(m.Name), Annotations: annotations, CreationTimestamp: oracleAgo(m.Age),
			Labels:     map[string]string{clusterv1.MachineControlPlaneLabel: ""},
			Finalizers: []string{clusterv1.MachineFinalizer},
		},
		Spec: clusterv1.MachineSpec{ClusterName: "c", Version: m.Version, FailureDomain: m.Domain},
	}
	if !m.NoProviderID {
		made.Spec.ProviderID = "host://" + m.Name
	}
	if m.Node != "" {
		made.Status.NodeRef = clusterv1.MachineNodeReference{Name: m.Node}
	}
	if m.Kubelet != "" {
		made.Status.NodeInfo = &corev1.NodeSystemInfo{KubeletVersion: m.Kubelet}
	}
	set := func(name string, status, reason, message string, seconds int) {
		conditions.Set(made, metav1.Condition{
			Type: name, Status: metav1.ConditionStatus(status), Reason: reason, Message: message, LastTransitionTime: oracleAgo(seconds),
		})
	}
	for name, check := range m.Checks {
		set(name, check[0], "Told", check[1], m.Since)
	}
	for name, other := range m.Others {
		set(name, other[0], other[1], other[2], m.Since)
	}
	if m.HealthChecked {
		set(clusterv1.MachineHealthCheckSucceededCondition, "True", "Told", "", 60)
	}
	if m.Unhealthy {
		set(clusterv1.MachineHealthCheckSucceededCondition, "False", "Told", "", 60)
	}
	if m.Ours {
		set(clusterv1.MachineOwnerRemediatedCondition, "False", "WaitingForRemediation", "", 60)
	}
	if m.DeletedAgo != nil {
		made.DeletionTimestamp = ptr.To(oracleAgo(*m.DeletedAgo))
		if m.WaitsForHook {
			set(clusterv1.MachineDeletingCondition, "True", clusterv1.MachineDeletingWaitingForPreTerminateHookReason, "", 5)
		}
	}
	return made
}

func (c oracleCase) controlPlane(workload pkg.WorkloadCluster) (*pkg.ControlPlane, []client.Object) {
	kcp := &controlplanev1.KubeadmControlPlane{
		TypeMeta:   metav1.TypeMeta{APIVersion: controlplanev1.GroupVersion.String(), Kind: "KubeadmControlPlane"},
		ObjectMeta: metav1.ObjectMeta{Name: "cp", Namespace: "n", Annotations: map[string]string{}},
		Spec: controlplanev1.KubeadmControlPlaneSpec{
			Replicas: ptr.To(c.Replicas), Version: c.Version,
			Remediation: controlplanev1.KubeadmControlPlaneRemediationSpec{
				MaxRetry: c.MaxRetry, RetryPeriodSeconds: c.RetryPeriod, MinHealthyPeriodSeconds: c.MinHealthyPeriod,
			},
		},
	}
	kcp.Spec.MachineTemplate.Spec.InfrastructureRef.Kind = "TestMachineTemplate"
	surge := 1
	if c.MaxSurge != nil {
		surge = *c.MaxSurge
	}
	kcp.Spec.Rollout.Strategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromInt(surge))
	if c.ExternalEtcd {
		kcp.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.Endpoints = []string{"https://etcd:2379"}
	}
	if !c.Uninitialized {
		kcp.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
		conditions.Set(kcp, metav1.Condition{
			Type: controlplanev1.KubeadmControlPlaneInitializedCondition, Status: metav1.ConditionTrue, Reason: "Initialized",
			LastTransitionTime: oracleAgo(c.InitializedAgo),
		})
	}
	if !c.NoCertificates {
		conditions.Set(kcp, metav1.Condition{Type: controlplanev1.KubeadmControlPlaneCertificatesAvailableCondition, Status: metav1.ConditionTrue, Reason: "Available"})
	}
	if c.MembersHealthy {
		conditions.Set(kcp, metav1.Condition{Type: controlplanev1.KubeadmControlPlaneEtcdClusterHealthyCondition, Status: metav1.ConditionTrue, Reason: "Healthy"})
	}
	if c.InProgress != nil {
		kcp.Annotations[controlplanev1.RemediationInProgressAnnotation] = c.InProgress.text()
	}
	if c.Deleting {
		kcp.DeletionTimestamp = ptr.To(oracleAgo(5))
	}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "n"}}
	for _, domain := range c.Domains {
		cluster.Status.FailureDomains = append(cluster.Status.FailureDomains, clusterv1.FailureDomain{Name: domain, ControlPlane: ptr.To(true)})
	}
	cluster.Status.FailureDomains = append(cluster.Status.FailureDomains, clusterv1.FailureDomain{Name: "workers", ControlPlane: ptr.To(false)})
	plane := &pkg.ControlPlane{
		KCP: kcp, Cluster: cluster, Machines: collections.Machines{}, MachinesNotUpToDate: collections.Machines{},
		EtcdMembersAndMachinesAreMatching: c.MembersMatch, InfraMachineTemplateIsNotFound: c.TemplateMissing,
	}
	objects := []client.Object{}
	for _, m := range c.Machines {
		object := m.object()
		objects = append(objects, object)
		plane.Machines.Insert(object)
		if m.Outdated {
			plane.MachinesNotUpToDate.Insert(object)
		}
		if m.Node != "" {
			node := &pkg.Node{}
			node.Name = m.Node
			node.CreationTimestamp = oracleAgo(m.NodeAge)
			plane.Nodes = append(plane.Nodes, node)
		}
	}
	for _, m := range c.Members {
		member := &etcd.Member{ID: m.ID, Name: m.Name, IsLearner: m.Learner}
		plane.EtcdMembers = append(plane.EtcdMembers, member)
		if m.Leader {
			plane.EtcdLeader = member
		}
		if m.Alarms {
			plane.EtcdMembersAlarms = append(plane.EtcdMembersAlarms, etcd.MemberAlarm{MemberID: m.ID, Type: etcd.AlarmNoSpace})
		}
	}
	plane.InjectTestManagementCluster(&oracleManagement{workload: workload})
	return plane, objects
}

func (c oracleCase) ask() (answer oracleAnswer) {
	ctx := context.Background()
	workload := &oracleWorkload{}
	plane, objects := c.controlPlane(workload)
	reconcileMachineUpToDateCondition(ctx, plane)
	for _, machine := range plane.Machines {
		if !machine.Status.NodeRef.IsDefined() {
			// Else its Node is looked for in a workload cluster, which there is none of.
			machine.Spec.ProviderID = ""
		}
	}
	scheme := runtime.NewScheme()
	_ = clusterv1.AddToScheme(scheme)
	_ = controlplanev1.AddToScheme(scheme)
	cl := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&clusterv1.Machine{}).Build()
	for name := range plane.Machines {
		found := &clusterv1.Machine{}
		if err := cl.Get(ctx, client.ObjectKeyFromObject(plane.Machines[name]), found); err != nil {
			panic(err)
		}
		plane.Machines[name].ResourceVersion = found.ResourceVersion
	}
	deletes := &oracleDeletes{}
	recorder := record.NewFakeRecorder(32)
	r := &Reconciler{Client: cl, controller: capicontrollerutil.NewFakeController(), recorder: recorder, machineClientWithDeleteResponse: deletes}
	verdict := func() {
		for _, machine := range plane.Machines {
			if c := conditions.Get(machine, clusterv1.MachineOwnerRemediatedCondition); c != nil && c.Reason != "WaitingForRemediation" {
				answer.Verdict = []string{machine.Name, c.Reason, c.Message}
			}
			if deprecated := machine.Status.Deprecated; deprecated != nil && deprecated.V1Beta1 != nil {
				for _, c := range deprecated.V1Beta1.Conditions {
					if c.Type == clusterv1.MachineOwnerRemediatedV1Beta1Condition {
						answer.Older = []string{c.Reason, string(c.Severity), c.Message}
					}
				}
			}
		}
	}
	result, err := r.reconcileEtcdMembers(ctx, plane)
	if err != nil || !result.IsZero() {
		answer = oracleAnswer{Step: "remove member", Seconds: result.RequeueAfter.Seconds()}
		if err != nil {
			return oracleAnswer{Step: "wait", Error: err.Error()}
		}
		answer.Member = &workload.removed.ID
		return answer
	}
	result, err = r.reconcilePreTerminateHook(ctx, plane)
	if err != nil {
		return oracleAnswer{Step: "wait", Error: err.Error()}
	}
	if !result.IsZero() {
		answer = oracleAnswer{Step: "wait", Seconds: result.RequeueAfter.Seconds()}
		for _, m := range c.Machines {
			if _, held := plane.Machines[m.Name].Annotations[controlplanev1.PreTerminateHookCleanupAnnotation]; !held && !m.NoHook {
				answer = oracleAnswer{Step: "release", Machine: m.Name, Leader: workload.leader}
				if workload.removed != nil {
					answer.Member = &workload.removed.ID
				}
			}
		}
		return answer
	}
	result, err = r.reconcileUnhealthyMachines(ctx, plane)
	verdict()
	if err != nil {
		answer.Step, answer.Error = "wait", err.Error()
		return answer
	}
	if !result.IsZero() {
		data, _ := RemediationDataFromAnnotation(plane.KCP.Annotations[controlplanev1.RemediationInProgressAnnotation])
		answer.Step, answer.Machine, answer.Leader, answer.Retries = "remediate", deletes.deleted, workload.leader, &data.RetryCount
		return answer
	}
	blocked := func(res preflightChecksResult) bool {
		if res.succeeded {
			return false
		}
		answer.Step, answer.Seconds = "wait", res.requeueAfter.Seconds()
		for _, message := range getPreflightMessages(plane.Cluster, res.PreflightCheckResults) {
			answer.Blocked = append(answer.Blocked, strings.TrimPrefix(message, "* "))
		}
		if res.eventStr != "" {
			text := strings.TrimPrefix(res.eventStr, "Waiting for control plane to pass preflight checks to continue reconciliation: ")
			answer.Problems = strings.Split(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"), ", ")
			sort.Strings(answer.Problems)
		}
		return true
	}
	domains := func() []string {
		found := map[string]bool{}
		for range 60 {
			domain, _ := plane.NextFailureDomainForScaleUp(ctx)
			found[domain] = true
		}
		list := []string{}
		for domain := range found {
			list = append(list, domain)
		}
		sort.Strings(list)
		return list
	}
	up := func(ctx context.Context, _ *pkg.ControlPlane) (ctrl.Result, error) {
		if !blocked(r.preflightChecks(ctx, plane, true)) {
			answer.Step, answer.Domains = "scale up", domains()
		}
		return ctrl.Result{}, nil
	}
	down := func(ctx context.Context, _ *pkg.ControlPlane, machine *clusterv1.Machine) (ctrl.Result, error) {
		if !blocked(r.preflightChecks(ctx, plane, false, machine)) {
			answer.Step, answer.Machine = "scale down", machine.Name
			if plane.IsEtcdManaged() {
				if err := r.forwardEtcdLeadership(ctx, workload, plane, machine); err != nil {
					answer.Step, answer.Machine, answer.Error = "wait", "", err.Error()
				}
			}
			answer.Leader = workload.leader
		}
		return ctrl.Result{}, nil
	}
	r.overrideScaleUpControlPlaneFunc, r.overrideScaleDownControlPlaneFunc = up, down
	outdated, _ := plane.MachinesNeedingRollout()
	have, want := len(plane.Machines), int(c.Replicas)
	switch {
	case len(outdated) > 0:
		// As rollingUpdate has it; the results of comparing Machines are not needed without in-place updates.
		if have < want+plane.KCP.Spec.Rollout.Strategy.RollingUpdate.MaxSurge.IntValue() {
			_, _ = up(ctx, plane)
			break
		}
		machine, err := selectMachineForInPlaceUpdateOrScaleDown(ctx, plane, outdated)
		if err != nil {
			answer.Step, answer.Error = "wait", err.Error()
			break
		}
		_, _ = down(ctx, plane, machine)
	case have == 0 && want > 0:
		answer.Step, answer.Domains = "create first", domains()
	case have < want:
		_, _ = up(ctx, plane)
	case have > want:
		machine, err := selectMachineForInPlaceUpdateOrScaleDown(ctx, plane, collections.Machines{})
		if err != nil {
			answer.Step, answer.Error = "wait", err.Error()
			break
		}
		_, _ = down(ctx, plane, machine)
	default:
		answer.Step = "nothing"
	}
	return answer
}

func (c oracleCase) status() map[string]any {
	ctx := context.Background()
	plane, _ := c.controlPlane(&oracleWorkload{})
	kcp, machines := plane.KCP, plane.Machines
	setReplicas(ctx, kcp, machines)
	setInitializedCondition(ctx, kcp)
	setRollingOutCondition(ctx, kcp, machines)
	setScalingUpCondition(ctx, plane.Cluster, kcp, machines, plane.InfraMachineTemplateIsNotFound, plane.PreflightCheckResults)
	setScalingDownCondition(ctx, plane.Cluster, kcp, machines, plane.PreflightCheckResults)
	setMachinesReadyCondition(ctx, kcp, machines)
	setMachinesUpToDateCondition(ctx, kcp, machines)
	setRemediatingCondition(ctx, kcp, plane.MachinesToBeRemediatedByKCP(), plane.UnhealthyMachines())
	setDeletingCondition(ctx, kcp, "WaitingForMachineDeletion", "Deleting")
	setAvailableCondition(ctx, kcp, plane.IsEtcdManaged(), plane.EtcdMembers, plane.EtcdMembersAndMachinesAreMatching, machines)
	found := map[string][3]string{}
	for _, condition := range kcp.Status.Conditions {
		found[condition.Type] = [3]string{string(condition.Status), condition.Reason, condition.Message}
	}
	counts := []int32{*kcp.Status.Replicas, *kcp.Status.ReadyReplicas, *kcp.Status.AvailableReplicas, *kcp.Status.UpToDateReplicas}
	return map[string]any{"conditions": found, "counts": counts}
}

// Oracle answers a list of cases.
func Oracle(command string, input []byte) any {
	cases := []oracleCase{}
	if err := json.Unmarshal(input, &cases); err != nil {
		panic(err)
	}
	answers := []any{}
	for _, c := range cases {
		if command == "status" {
			answers = append(answers, c.status())
		} else {
			answers = append(answers, c.ask())
		}
	}
	return answers
}
