// Mirrors, aggregates and sums up conditions with Cluster API's own functions.
package main

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"sigs.k8s.io/cluster-api/util/conditions"
)

type source struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Conditions        []metav1.Condition `json:"conditions"`
}

func (s *source) DeepCopyObject() runtime.Object         { panic("not needed") }
func (s *source) GetConditions() []metav1.Condition      { return s.Conditions }
func (s *source) SetConditions(found []metav1.Condition) { s.Conditions = found }

type conditionCase struct {
	// mirror
	Object   map[string]any `json:"object"`
	Fallback *struct {
		Status  metav1.ConditionStatus `json:"status"`
		Reason  string                 `json:"reason"`
		Message string                 `json:"message"`
	} `json:"fallback"`
	// aggregate
	Sources []*source `json:"sources"`
	// summary
	Conditions []metav1.Condition `json:"conditions"`
	Of         []string           `json:"of"`
	Missing    []string           `json:"ignoredIfMissing"`
	Harmless   []string           `json:"harmless"`
	// all
	Type     string   `json:"type"`
	Target   string   `json:"target"`
	Negative []string `json:"negative"`
	Reasons  []string `json:"reasons"`
}

func mirror(question json.RawMessage) (any, error) {
	var c conditionCase
	must(json.Unmarshal(question, &c))
	options := []conditions.MirrorOption{}
	if c.Target != "" {
		options = append(options, conditions.TargetConditionType(c.Target))
	}
	if c.Fallback != nil {
		options = append(options, conditions.FallbackCondition{Status: c.Fallback.Status, Reason: c.Fallback.Reason, Message: c.Fallback.Message})
	}
	object := &unstructured.Unstructured{}
	// Through JSON once more, for the integers that unstructured wants.
	raw, err := json.Marshal(c.Object)
	must(err)
	must(object.UnmarshalJSON(raw))
	return conditions.NewMirrorConditionFromUnstructured(object, c.Type, options...)
}

func aggregate(question json.RawMessage) (any, error) {
	var c conditionCase
	must(json.Unmarshal(question, &c))
	options := []conditions.AggregateOption{}
	if c.Target != "" {
		options = append(options, conditions.TargetConditionType(c.Target))
	}
	if len(c.Negative) > 0 {
		options = append(options, conditions.NegativePolarityConditionTypes(c.Negative))
	}
	if len(c.Reasons) == 3 {
		options = append(options, conditions.CustomMergeStrategy{MergeStrategy: conditions.DefaultMergeStrategy(
			conditions.TargetConditionHasPositivePolarity(len(c.Negative) == 0),
			conditions.ComputeReasonFunc(conditions.GetDefaultComputeMergeReasonFunc(c.Reasons[0], c.Reasons[1], c.Reasons[2])),
			conditions.GetPriorityFunc(conditions.GetDefaultMergePriorityFunc(c.Negative...)),
		)})
	}
	return conditions.NewAggregateCondition(c.Sources, c.Type, options...)
}

func summary(question json.RawMessage) (any, error) {
	var c conditionCase
	must(json.Unmarshal(question, &c))
	harmless := map[string]bool{}
	for _, name := range c.Harmless {
		harmless[name] = true
	}
	priority := conditions.GetDefaultMergePriorityFunc(c.Negative...)
	strategy := []conditions.DefaultMergeStrategyOption{conditions.GetPriorityFunc(func(one metav1.Condition) conditions.MergePriority {
		if harmless[one.Type] {
			return conditions.InfoMergePriority
		}
		return priority(one)
	})}
	if len(c.Reasons) == 3 {
		strategy = append(strategy, conditions.ComputeReasonFunc(conditions.GetDefaultComputeMergeReasonFunc(c.Reasons[0], c.Reasons[1], c.Reasons[2])))
	}
	options := []conditions.SummaryOption{
		conditions.ForConditionTypes(c.Of),
		conditions.IgnoreTypesIfMissing(c.Missing),
		conditions.CustomMergeStrategy{MergeStrategy: conditions.DefaultMergeStrategy(strategy...)},
	}
	return conditions.NewSummaryCondition(&source{Conditions: c.Conditions}, c.Type, options...)
}
