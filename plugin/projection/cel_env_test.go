package projection

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// The API server compiles and evaluates matchConditions in exactly this way:
// k8s.io/apiserver pkg/admission/plugin/webhook/accessors.go and
// matchconditions/matcher.go.
type conditionSet struct {
	evaluators []plugincel.ConditionEvaluator
	text       []string
}

// The API servers that the conditions are made for. The library here is that of
// the newest; the older ones' environments are what it can tell of them.
const oldestServer, newestServer = 28, 37

func compileConditions(t testing.TB, minor uint, expressions ...string) conditionSet {
	t.Helper()
	env := environment.MustBaseEnvSet(version.MajorMinor(1, minor))
	accessors := make([]plugincel.ExpressionAccessor, len(expressions))
	for i, e := range expressions {
		accessors[i] = &matchconditions.MatchCondition{Name: fmt.Sprintf("c%d", i), Expression: e}
	}
	compiler := plugincel.NewConditionCompiler(env)
	out := conditionSet{text: expressions}
	for _, a := range accessors {
		c := compiler.CompileCondition([]plugincel.ExpressionAccessor{a}, plugincel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.NewExpressions)
		for _, err := range c.CompilationErrors() {
			t.Fatalf("compiling for 1.%d: %v\n%s", minor, err, strings.Join(expressions, "\n\n"))
		}
		out.evaluators = append(out.evaluators, c)
	}
	return out
}

// outcome is what the conditions say of one request.
type outcome struct {
	values []bool
	costs  []int64
	total  int64
	err    error
}

func (o outcome) asked() bool {
	for _, v := range o.values {
		if !v {
			return false
		}
	}
	return o.err == nil
}

// evaluate runs the conditions within the API server's budget.
func (c conditionSet) evaluate(t testing.TB, old, obj runtime.Object) outcome {
	t.Helper()
	attr := &admission.VersionedAttributes{}
	attr.Attributes = admission.NewAttributesRecord(nil, nil, obj.GetObjectKind().GroupVersionKind(), "ns", "x", obj.GetObjectKind().GroupVersionKind().GroupVersion().WithResource("x"), "", admission.Update, nil, false, nil)
	attr.VersionedObject.Set(obj)
	if old != nil {
		attr.VersionedOldObject.Set(old)
	}
	budget := int64(celconfig.RuntimeCELCostBudgetMatchConditions)
	out := outcome{}
	var results []plugincel.EvaluationResult
	for _, e := range c.evaluators { // one by one, for the cost of each
		r, left, err := e.ForInput(context.Background(), attr, &admissionv1.AdmissionRequest{}, plugincel.OptionalVariableBindings{}, nil, budget)
		if err != nil {
			out.err = err
			return out
		}
		results = append(results, r...)
		out.costs = append(out.costs, budget-left)
		out.total += budget - left
		budget = left
	}
	for _, r := range results {
		if r.Error != nil {
			out.err = r.Error
			out.values = append(out.values, false)
			continue
		}
		out.values = append(out.values, r.EvalResult.Value().(bool))
	}
	return out
}

// raw is an object as the API server hands over a custom resource: decoded
// JSON with int64 and float64.
func raw(obj map[string]any) runtime.Object {
	return &unstructured.Unstructured{Object: numbers(obj).(map[string]any)}
}

func numbers(v any) any {
	switch t := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(t))
		for k, x := range t {
			out[k] = numbers(x)
		}
		return out
	case []any:
		out := make([]any, len(t))
		for i, x := range t {
			out[i] = numbers(x)
		}
		return out
	case explicitNull:
		return nil
	case json.Number:
		if i, err := t.Int64(); err == nil {
			return i
		}
		f, _ := t.Float64()
		return f
	}
	return v
}
