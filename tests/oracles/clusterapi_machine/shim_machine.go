// What the oracle asks of the Machine reconciler; it is put into that package, whose functions are not exported.

package machine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/controllers/external"
	externalfake "sigs.k8s.io/cluster-api/controllers/external/fake"
	"sigs.k8s.io/cluster-api/feature"
	"sigs.k8s.io/cluster-api/util/annotations"
	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"
	"sigs.k8s.io/cluster-api/util/labels"
	"sigs.k8s.io/cluster-api/util/patch"
)

// OracleCase is one question; which of the fields count depends on the subject.
type OracleCase struct {
	Machine           *clusterv1.Machine           `json:"machine,omitempty"`
	Cluster           *clusterv1.Cluster           `json:"cluster,omitempty"`
	MachineSet        *clusterv1.MachineSet        `json:"machineSet,omitempty"`
	MachineDeployment *clusterv1.MachineDeployment `json:"machineDeployment,omitempty"`
	Machines          []clusterv1.Machine          `json:"machines,omitempty"`
	Config            *unstructured.Unstructured   `json:"config,omitempty"`
	ConfigNotFound    bool                         `json:"configNotFound,omitempty"`
	Infra             *unstructured.Unstructured   `json:"infra,omitempty"`
	InfraNotFound     bool                         `json:"infraNotFound,omitempty"`
	ControlPlane      *unstructured.Unstructured   `json:"controlPlane,omitempty"`
	Contract          string                       `json:"contract,omitempty"`
	Node              *corev1.Node                 `json:"node,omitempty"`
	NodeError         string                       `json:"nodeError,omitempty"`
	LastProbe         string                       `json:"lastProbe,omitempty"`
	ProbeFailures     int                          `json:"probeFailures,omitempty"`
	DeletingReason    string                       `json:"deletingReason,omitempty"`
	DeletingMessage   string                       `json:"deletingMessage,omitempty"`
	Taints            bool                         `json:"taints,omitempty"`
	Pods              []corev1.Pod                 `json:"pods,omitempty"`
	Volumes           []corev1.PersistentVolume    `json:"volumes,omitempty"`
	Attachments       []storagev1.VolumeAttachment `json:"attachments,omitempty"`
	Rules             []clusterv1.MachineDrainRule `json:"rules,omitempty"`
}

type answer map[string]any

// Oracle answers one question.
func Oracle(subject string, raw []byte) (any, error) {
	c := &OracleCase{}
	if err := json.Unmarshal(raw, c); err != nil {
		return nil, err
	}
	ctx := log.IntoContext(context.Background(), logr.New(log.NullLogSink{}))
	switch subject {
	case "status":
		return c.status(ctx), nil
	case "node":
		return c.nodePatch(ctx)
	case "allowed":
		return c.allowed(ctx)
	case "deletion":
		return c.deletion(ctx)
	case "external":
		return c.external(ctx)
	case "volumes":
		return c.volumes(ctx)
	}
	return nil, errors.New("unknown subject " + subject)
}

func (c *OracleCase) probe() clustercache.HealthCheckingState {
	state := clustercache.HealthCheckingState{ConsecutiveFailures: c.ProbeFailures}
	if c.LastProbe != "" {
		state.LastProbeSuccessTime, _ = time.Parse(time.RFC3339, c.LastProbe)
	}
	return state
}

// status runs the setters in the order of updateStatus.
func (c *OracleCase) status(ctx context.Context) answer {
	m := c.Machine
	var nodeErr error
	switch c.NodeError {
	case "":
	case "not connected":
		nodeErr = clustercache.ErrClusterNotConnected
	default:
		nodeErr = errors.New(c.NodeError)
	}
	setBootstrapReadyCondition(ctx, m, c.Config, c.ConfigNotFound)
	setInfrastructureReadyCondition(ctx, m, c.Infra, c.InfraNotFound)
	setNodeHealthyAndReadyConditions(ctx, c.Cluster, m, c.Node, nodeErr, c.probe(), 5*time.Minute)
	setDeletingCondition(ctx, m, c.DeletingReason, c.DeletingMessage)
	setUpdatingCondition(ctx, m, "", "")
	setUpToDateCondition(ctx, m, c.MachineSet, c.MachineDeployment)
	setReadyCondition(ctx, m)
	setMachinePhaseAndLastUpdated(ctx, m)
	result := setAvailableCondition(ctx, m)
	return answer{
		"conditions": shown(m.Status.Conditions), "phase": m.Status.Phase,
		"updated": !m.Status.LastUpdated.IsZero(), "requeue": result.RequeueAfter > 0,
	}
}

func shown(all []metav1.Condition) [][]string {
	out := [][]string{}
	for _, each := range all {
		out = append(out, []string{each.Type, string(each.Status), each.Reason, each.Message})
	}
	return out
}

func older(m *clusterv1.Machine) [][]string {
	out := [][]string{}
	for _, each := range m.GetV1Beta1Conditions() {
		out = append(out, []string{string(each.Type), string(each.Status), each.Reason, string(each.Severity), each.Message})
	}
	return out
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	_ = clientgoscheme.AddToScheme(s)
	_ = clusterv1.AddToScheme(s)
	_ = apiextensionsv1.AddToScheme(s)
	return s
}

func remote(objects ...client.Object) client.Client {
	byNode := func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }
	byProvider := func(o client.Object) []string { return []string{o.(*corev1.Node).Spec.ProviderID} }
	return fake.NewClientBuilder().WithScheme(scheme()).WithObjects(objects...).
		WithIndex(&corev1.Pod{}, "spec.nodeName", byNode).
		WithIndex(&corev1.Node{}, "spec.providerID", byProvider).Build()
}

func (c *OracleCase) nodePatch(ctx context.Context) (any, error) {
	_ = feature.MutableGates.Set("MachineTaintPropagation=" + map[bool]string{true: "true", false: "false"}[c.Taints])
	client := remote(c.Node)
	node := &corev1.Node{}
	if err := client.Get(ctx, clientKey(c.Node), node); err != nil {
		return nil, err
	}
	r := &Reconciler{}
	nodeLabels := labels.GetManagedLabels(c.Machine.Labels)
	if c.Infra != nil {
		if yes, found, err := unstructured.NestedBool(c.Infra.Object, "status", "interruptible"); err == nil && found && yes {
			nodeLabels[clusterv1.InterruptibleLabel] = ""
		}
	}
	version := node.ResourceVersion
	err := r.patchNode(ctx, client, node, nodeLabels, annotations.GetManagedAnnotations(c.Machine), c.Machine, c.MachineSet, c.MachineDeployment)
	if err != nil {
		return answer{"error": true}, nil
	}
	after := &corev1.Node{}
	if err := client.Get(ctx, clientKey(c.Node), after); err != nil {
		return nil, err
	}
	return answer{
		"labels": after.Labels, "annotations": after.Annotations, "taints": after.Spec.Taints,
		"changed": after.ResourceVersion != version,
	}, nil
}

func clientKey(o client.Object) client.ObjectKey { return client.ObjectKeyFromObject(o) }

func (c *OracleCase) management() client.Client {
	objects := []client.Object{c.Cluster, c.Machine}
	for i := range c.Machines {
		objects = append(objects, &c.Machines[i])
	}
	for i := range c.Rules {
		objects = append(objects, &c.Rules[i])
	}
	contract := c.Contract
	if contract == "" {
		contract = "v1beta2"
	}
	for _, each := range []*unstructured.Unstructured{c.Config, c.Infra, c.ControlPlane} {
		if each != nil {
			objects = append(objects, each)
		}
	}
	for _, name := range []string{
		"testmachines.infrastructure.cluster.x-k8s.io", "testconfigs.bootstrap.cluster.x-k8s.io", "testcontrolplanes.controlplane.cluster.x-k8s.io",
	} {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		crd.Name = name
		crd.Labels = map[string]string{"cluster.x-k8s.io/" + contract: "v1"}
		objects = append(objects, crd)
	}
	return fake.NewClientBuilder().WithScheme(scheme()).WithObjects(objects...).WithStatusSubresource(&clusterv1.Machine{}).Build()
}

func (c *OracleCase) reconciler(management, workload client.Client) *Reconciler {
	return &Reconciler{
		Client:       management,
		APIReader:    management,
		ClusterCache: clustercache.NewFakeClusterCache(workload, client.ObjectKeyFromObject(c.Cluster)),
		recorder:     record.NewFakeRecorder(100),
		controller:   capicontrollerutil.NewFakeController(),
		externalTracker: external.ObjectTracker{
			Controller:      externalfake.Controller{},
			Cache:           &informertest.FakeInformers{},
			Scheme:          management.Scheme(),
			PredicateLogger: ptr.To(logr.New(log.NullLogSink{})),
		},
		nodeDeletionRetryTimeout: 10 * time.Millisecond,
	}
}

// allowed is what decides which steps of a deletion are left out.
func (c *OracleCase) allowed(ctx context.Context) (any, error) {
	management := c.management()
	workload := remote()
	if c.Node != nil {
		workload = remote(c.Node)
	}
	r := c.reconciler(management, workload)
	cause := ""
	if err := r.isDeleteNodeAllowed(ctx, c.Cluster, c.Machine, c.Infra); err != nil {
		cause = err.Error()
	}
	return answer{
		"node": cause, "drain": r.isNodeDrainAllowed(c.Machine, c.Infra), "volumes": r.isNodeVolumeDetachingAllowed(c.Machine, c.Infra),
		"nodeRef": c.Machine.Status.NodeRef.Name,
	}, nil
}

func (c *OracleCase) deletion(ctx context.Context) (any, error) {
	management := c.management()
	objects := []client.Object{}
	if c.Node != nil {
		objects = append(objects, c.Node)
	}
	namespaces := map[string]bool{}
	for i := range c.Pods {
		objects = append(objects, &c.Pods[i])
		if name := c.Pods[i].Namespace; !namespaces[name] {
			namespaces[name] = true
			objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
	}
	for i := range c.Volumes {
		objects = append(objects, &c.Volumes[i])
	}
	for i := range c.Attachments {
		objects = append(objects, &c.Attachments[i])
	}
	workload := remote(objects...)
	r := c.reconciler(management, workload)
	m := &clusterv1.Machine{}
	if err := management.Get(ctx, client.ObjectKeyFromObject(c.Machine), m); err != nil {
		return nil, err
	}
	helper, err := patch.NewHelper(m, management)
	if err != nil {
		return nil, err
	}
	s := &scope{
		cluster: c.Cluster, machine: m, infraMachine: c.Infra, infraMachineIsNotFound: c.InfraNotFound,
		bootstrapConfig: c.Config, bootstrapConfigIsNotFound: c.ConfigNotFound,
	}
	result, reconcileErr := r.reconcileDelete(ctx, s)
	_ = patchMachine(ctx, helper, m)
	left := func(o *unstructured.Unstructured) bool {
		if o == nil {
			return false
		}
		found := o.DeepCopy()
		err := management.Get(ctx, client.ObjectKeyFromObject(o), found)
		return err == nil && found.GetDeletionTimestamp().IsZero()
	}
	nodeLeft, unschedulable := false, false
	if c.Node != nil {
		node := &corev1.Node{}
		nodeLeft = workload.Get(ctx, client.ObjectKeyFromObject(c.Node), node) == nil
		unschedulable = node.Spec.Unschedulable
	}
	started := []string{}
	if d := m.Status.Deletion; d != nil {
		for name, at := range map[string]metav1.Time{
			"nodeDrainStartTime": d.NodeDrainStartTime, "waitForNodeVolumeDetachStartTime": d.WaitForNodeVolumeDetachStartTime,
			"waitForPreDrainHookStartTime": d.WaitForPreDrainHookStartTime, "waitForPreTerminateHookStartTime": d.WaitForPreTerminateHookStartTime,
		} {
			if !at.IsZero() {
				started = append(started, name)
			}
		}
	}
	slices.Sort(started)
	return answer{
		"reason": s.deletingReason, "message": s.deletingMessage, "requeue": result.RequeueAfter.Seconds(), "failed": reconcileErr != nil,
		"finalizers": len(m.Finalizers), "infra": left(c.Infra), "config": left(c.Config), "node": nodeLeft, "cordoned": unschedulable,
		"started": started, "older": older(m),
	}, nil
}

func (c *OracleCase) external(ctx context.Context) (any, error) {
	management := c.management()
	r := c.reconciler(management, remote())
	m := c.Machine
	s := &scope{cluster: c.Cluster, machine: m}
	first, err := r.reconcileBootstrap(ctx, s)
	bootstrapFailed := err != nil
	second, err := r.reconcileInfrastructure(ctx, s)
	infraFailed := err != nil
	_, err = r.reconcileCertificateExpiry(ctx, s)
	owners := func(o *unstructured.Unstructured) any {
		if o == nil {
			return nil
		}
		found := o.DeepCopy()
		if err := management.Get(ctx, client.ObjectKeyFromObject(o), found); err != nil {
			return nil
		}
		return answer{"owners": found.GetOwnerReferences(), "labels": found.GetLabels()}
	}
	helper, _ := patch.NewHelper(m, management)
	_ = patchMachine(ctx, helper, m)
	deprecated := answer{}
	if d := m.Status.Deprecated; d != nil && d.V1Beta1 != nil {
		deprecated["failureReason"], deprecated["failureMessage"] = d.V1Beta1.FailureReason, d.V1Beta1.FailureMessage
	}
	expiry := ""
	if !m.Status.CertificatesExpiryDate.IsZero() {
		expiry = m.Status.CertificatesExpiryDate.UTC().Format(time.RFC3339)
	}
	return answer{
		"bootstrap": answer{"requeue": first.RequeueAfter.Seconds(), "failed": bootstrapFailed},
		"infra":     answer{"requeue": second.RequeueAfter.Seconds(), "failed": infraFailed},
		"expiry":    answer{"failed": err != nil, "date": expiry},
		"dataSecretName": ptr.Deref(m.Spec.Bootstrap.DataSecretName, ""), "providerID": m.Spec.ProviderID, "specFailureDomain": m.Spec.FailureDomain,
		"failureDomain": m.Status.FailureDomain, "addresses": m.Status.Addresses, "initialization": m.Status.Initialization,
		"deprecated": deprecated, "older": older(m), "config": owners(c.Config), "machineInfra": owners(c.Infra),
	}, nil
}

func (c *OracleCase) volumes(ctx context.Context) (any, error) {
	objects := []client.Object{c.Node}
	for i := range c.Pods {
		objects = append(objects, &c.Pods[i], &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Pods[i].Namespace}})
	}
	for i := range c.Volumes {
		objects = append(objects, &c.Volumes[i])
	}
	for i := range c.Attachments {
		objects = append(objects, &c.Attachments[i])
	}
	workload, management := remote(objects...), c.management()
	names, volumes, err := getAttachedVolumeInformation(ctx, workload, c.Node)
	if err != nil {
		return answer{"error": true}, nil
	}
	ignored, err := getPersistentVolumeClaimsToIgnore(ctx, management, workload, c.Cluster, c.Machine, c.Node.Name)
	if err != nil {
		return answer{"error": true}, nil
	}
	waiting, err := getPersistentVolumesWaitingForDetach(ctx, workload, names, volumes, ignored)
	if err != nil {
		return answer{"error": true}, nil
	}
	return answer{"message": waiting.conditionMessage(c.Machine), "done": waiting.isEmpty()}, nil
}
