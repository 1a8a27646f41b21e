// Put into the package of Cluster API's Cluster controller: runs the part of it that reads what a Cluster refers to, on a fake client.
package cluster

import (
	"context"
	"encoding/json"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/external"
	externalfake "sigs.k8s.io/cluster-api/controllers/external/fake"
	v1beta1conditions "sigs.k8s.io/cluster-api/util/conditions/deprecated/v1beta1"
)

func definition(name, kind, contract string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"cluster.x-k8s.io/" + contract: "v1"}},
		Spec:       apiextensionsv1.CustomResourceDefinitionSpec{Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind}},
	}
}

// OraclePhases is the Cluster after its infrastructure and its control plane have been read, and how that went.
func OraclePhases(question json.RawMessage) (any, error) {
	c := struct {
		Cluster                clusterv1.Cluster   `json:"cluster"`
		Infrastructure         map[string]any      `json:"infrastructure"`
		InfrastructureContract string              `json:"infrastructureContract"`
		ControlPlane           map[string]any      `json:"controlPlane"`
		ControlPlaneContract   string              `json:"controlPlaneContract"`
		Machines               []clusterv1.Machine `json:"machines"`
	}{InfrastructureContract: "v1beta2", ControlPlaneContract: "v1beta2"}
	if err := json.Unmarshal(question, &c); err != nil {
		return nil, err
	}
	ctx := context.Background()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	objects := []client.Object{
		&c.Cluster,
		definition("testclusters.infrastructure.cluster.x-k8s.io", "TestCluster", c.InfrastructureContract),
		definition("testcontrolplanes.controlplane.cluster.x-k8s.io", "TestControlPlane", c.ControlPlaneContract),
	}
	for _, found := range []map[string]any{c.Infrastructure, c.ControlPlane} {
		if object := unstructuredOf(found); object != nil {
			objects = append(objects, object)
		}
	}
	for i := range c.Machines {
		objects = append(objects, &c.Machines[i])
	}
	fakeClient := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	r := &Reconciler{
		Client:   fakeClient,
		recorder: record.NewFakeRecorder(32),
		externalTracker: external.ObjectTracker{
			Controller:      externalfake.Controller{},
			Cache:           &informertest.FakeInformers{},
			Scheme:          scheme,
			PredicateLogger: ptr.To(logr.New(log.NullLogSink{})),
		},
	}
	s := &scope{cluster: c.Cluster.DeepCopy()}
	answer := map[string]any{}
	if _, err := r.reconcileInfrastructure(ctx, s); err != nil {
		answer["infrastructure"] = err.Error()
	}
	if _, err := r.reconcileControlPlane(ctx, s); err != nil {
		answer["controlPlane"] = err.Error()
	}
	if s.cluster.DeletionTimestamp.IsZero() {
		if _, err := r.reconcileV1Beta1ControlPlaneInitialized(ctx, s); err != nil {
			return nil, err
		}
	}
	v1beta1conditions.SetSummary(s.cluster, v1beta1conditions.WithConditions(
		clusterv1.ControlPlaneReadyV1Beta1Condition, clusterv1.InfrastructureReadyV1Beta1Condition,
	))
	answer["endpoint"] = s.cluster.Spec.ControlPlaneEndpoint
	answer["initialization"] = s.cluster.Status.Initialization
	answer["failureDomains"] = s.cluster.Status.FailureDomains
	answer["deprecated"] = s.cluster.Status.Deprecated
	return answer, nil
}
