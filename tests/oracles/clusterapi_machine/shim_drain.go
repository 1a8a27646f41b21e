// What the oracle asks of the drain; it is put into that package, whose verdicts are not exported.

package drain

import (
	"context"
	"encoding/json"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Refusal is what the API server answers to the eviction of a Pod.
type Refusal struct {
	Code    int      `json:"code"`
	Message string   `json:"message"`
	Causes  []string `json:"causes,omitempty"`
}

// OracleCase is a Node with its Pods, and what is to happen to them.
type OracleCase struct {
	Machine     *clusterv1.Machine           `json:"machine"`
	Cluster     *clusterv1.Cluster           `json:"cluster"`
	Rules       []clusterv1.MachineDrainRule `json:"rules,omitempty"`
	Pods        []corev1.Pod                 `json:"pods"`
	Namespaces  []corev1.Namespace           `json:"namespaces,omitempty"`
	DaemonSets  []appsv1.DaemonSet           `json:"daemonSets,omitempty"`
	Unreachable bool                         `json:"unreachable,omitempty"`
	Refusals    map[string]Refusal           `json:"refusals,omitempty"`
	Started     string                       `json:"started,omitempty"`
}

type verdict struct {
	Pod      string `json:"pod"`
	Behavior string `json:"behavior"`
	Order    *int32 `json:"order"`
	Warning  string `json:"warning"`
}

// Oracle says of each Pod what is done with it, and what the condition says then.
func Oracle(raw []byte) (any, error) {
	c := &OracleCase{}
	if err := json.Unmarshal(raw, c); err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	_ = clientgoscheme.AddToScheme(scheme)
	_ = clusterv1.AddToScheme(scheme)
	management := fake.NewClientBuilder().WithScheme(scheme)
	for i := range c.Rules {
		management = management.WithObjects(&c.Rules[i])
	}
	workload := fake.NewClientBuilder().WithScheme(scheme).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} })
	for i := range c.Pods {
		workload = workload.WithObjects(&c.Pods[i])
	}
	for i := range c.Namespaces {
		workload = workload.WithObjects(&c.Namespaces[i])
	}
	for i := range c.DaemonSets {
		workload = workload.WithObjects(&c.DaemonSets[i])
	}
	evicted := []string{}
	workload = workload.WithInterceptorFuncs(interceptor.Funcs{
		SubResourceCreate: func(_ context.Context, _ client.Client, _ string, pod client.Object, eviction client.Object, _ ...client.SubResourceCreateOption) error {
			if grace := eviction.(*policyv1.Eviction).DeleteOptions.GracePeriodSeconds; (grace != nil) != c.Unreachable {
				return errors.New("the grace period is not what was expected")
			}
			if refusal, found := c.Refusals[pod.GetNamespace()+"/"+pod.GetName()]; found {
				status := metav1.Status{Code: int32(refusal.Code), Message: refusal.Message, Status: metav1.StatusFailure}
				status.Reason = map[int]metav1.StatusReason{
					404: metav1.StatusReasonNotFound, 429: metav1.StatusReasonTooManyRequests, 403: metav1.StatusReasonForbidden, 500: metav1.StatusReasonInternalError,
				}[refusal.Code]
				if refusal.Causes != nil {
					status.Details = &metav1.StatusDetails{}
					for _, each := range refusal.Causes {
						cause := metav1.StatusCause{Message: each}
						if refusal.Code == 403 {
							cause.Type = corev1.NamespaceTerminatingCause
						}
						status.Details.Causes = append(status.Details.Causes, cause)
					}
				}
				return &apierrors.StatusError{ErrStatus: status}
			}
			evicted = append(evicted, pod.GetNamespace()+"/"+pod.GetName())
			return nil
		},
	})
	helper := &Helper{Client: management.Build(), RemoteClient: workload.Build(), GracePeriodSeconds: -1}
	if c.Unreachable {
		helper.GracePeriodSeconds, helper.SkipWaitForDeleteTimeoutSeconds = 1, 1
	}
	ctx := context.Background()
	list, err := helper.GetPodsForEviction(ctx, c.Cluster, c.Machine, "n")
	if err != nil {
		return map[string]any{"error": true}, nil
	}
	verdicts := []verdict{}
	for _, each := range list.items {
		found := verdict{Pod: each.Pod.Namespace + "/" + each.Pod.Name, Behavior: string(each.Status.DrainBehavior), Order: each.Status.DrainOrder}
		if each.Status.Reason == PodDeleteStatusTypeWarning {
			found.Warning = each.Status.Message
		}
		verdicts = append(verdicts, found)
	}
	result := helper.EvictPods(ctx, list)
	at := &metav1.Time{}
	_ = at.UnmarshalQueryParameter(c.Started)
	return map[string]any{
		"verdicts": verdicts, "evicted": evicted, "completed": result.DrainCompleted(), "message": result.ConditionMessage(*at),
	}, nil
}
