// Put beside the controller of ClusterResourceSets: what it reads from ConfigMaps and Secrets, and when it applies it.
package clusterresourceset

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
)

// Content is the hash of a resource and its objects in the order of their creation.
func Content(resource *unstructured.Unstructured) (string, []unstructured.Unstructured, error) {
	data, err := normalizeData(resource)
	if err != nil {
		return "", nil, err
	}
	objects, err := objsFromYamlData(data)
	return computeHash(data), objects, err
}

// NeedsApply says whether a resource with this hash would be applied.
func NeedsApply(
	set *addonsv1.ClusterResourceSet, ref addonsv1.ResourceRef, binding *addonsv1.ClusterResourceSetBinding, hash string,
) (bool, error) {
	scope, err := newResourceReconcileScope(set, ref, binding.GetOrCreateBinding(set), nil, nil)
	if err != nil {
		return false, err
	}
	switch each := scope.(type) {
	case *reconcileStrategyScope:
		each.computedHash = hash
	case *reconcileApplyOnceScope:
		each.computedHash = hash
	}
	return scope.needsApply(), nil
}
