package projection

// webhooks: the rules of a webhook configuration. caBundle is rewritten at
// every certificate rotation and is never a leaf.
func webhooks(w *walker, obj map[string]any) {
	s := shapes["admissionregistration/v1.ValidatingWebhookConfiguration"]
	if obj["kind"] == "MutatingWebhookConfiguration" {
		s = shapes["admissionregistration/v1.MutatingWebhookConfiguration"]
	}
	w.unknownTop(Admission, s, obj)
	w.take(Admission, "webhooks", s.fields["webhooks"], without(obj["webhooks"], "caBundle"))
}

func apiService(w *walker, obj map[string]any) {
	w.takeAny(Admission, "spec", without(withoutFilledIn(obj, "spec", obj["spec"]), "caBundle"), nil)
}

// conversion: "None" is what an absent strategy means.
func conversion(w *walker, obj map[string]any) {
	_, v := w.get(obj, "spec.conversion")
	if m, ok := v.(map[string]any); ok && len(m) == 1 && m["strategy"] == "None" {
		return
	}
	w.takeAny(Admission, "spec.conversion", without(withoutFilledIn(obj, "spec.conversion", v), "caBundle"), nil)
}

// without copies a tree and leaves out a member wherever it stands.
func without(v any, name string) any {
	switch t := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(t))
		for k, x := range t {
			if k != name {
				out[k] = without(x, name)
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(t))
		for _, x := range t {
			out = append(out, without(x, name))
		}
		return out
	}
	return v
}

// takeAny flattens objects of unknown shape to their scalars and lists.
func (w *walker) takeAny(c Category, path string, v any, skip func(path string) bool) {
	if v == nil || skip != nil && skip(path) {
		return
	}
	obj, ok := v.(map[string]any)
	if !ok || len(obj) == 0 {
		w.take(c, path, anyMember, v)
		return
	}
	for k, x := range obj {
		w.takeAny(c, path+"."+fieldName(k), x, skip)
	}
}

// deliveryTuning are fields of delivery kinds that say when and how often,
// not what and where; sourceTuning those of what they fetch from. Of a list see
// withoutRevisions.
var (
	deliveryTuning = []string{
		"spec.source.targetRevision", "spec.sources[].targetRevision", "spec.syncPolicy.automated", "spec.syncPolicy.retry",
		"spec.revisionHistoryLimit", "spec.interval", "spec.retryInterval", "spec.timeout",
		"spec.template.spec.source.targetRevision", "spec.template.spec.revisionHistoryLimit",
		"spec.template.spec.syncPolicy.automated", "spec.maxHistory", "spec.suspend",
		"spec.chart.spec.interval", "spec.chart.spec.version", "spec.startingCSV", "spec.version",
	}
	sourceTuning        = []string{"spec.ref", "spec.interval", "spec.timeout", "spec.suspend"}
	deliveryAnnotations = &metaRule{names: nameSet("argocd-image-updater.argoproj.io/*"), except: []*names{bookkeeping}}
)

// delivery: an object that makes a controller fetch and apply others. Of a
// multi-source Application the revisions inside spec.sources are left out.
// Whatever stands beside the spec counts too: Argo CD carries out a top-level
// operation of an Application, with a source of its own.
func delivery(w *walker, obj map[string]any) {
	for k, v := range obj {
		switch k {
		case "apiVersion", "kind", "metadata", "status":
		case "spec":
			w.takeAny(Delivery, "spec", withoutRevisions(withoutFilledIn(obj, "spec", v)), func(p string) bool { return contains(deliveryTuning, p) })
		default:
			w.takeAny(Delivery, fieldName(k), v, nil)
		}
	}
	w.annotations(Delivery, obj, deliveryAnnotations)
}

// source: where Flux fetches from, and whom it trusts for it; which revision
// and how often is tuning.
func source(w *walker, obj map[string]any) {
	_, v := w.get(obj, "spec")
	w.takeAny(Delivery, "spec", withoutFilledIn(obj, "spec", v), func(p string) bool { return contains(sourceTuning, p) })
}

func withoutRevisions(v any) any {
	spec, _ := v.(map[string]any)
	sources, _ := spec["sources"].([]any)
	if len(sources) == 0 {
		return v
	}
	list := make([]any, len(sources))
	for i, x := range sources {
		list[i] = x
		if source, ok := x.(map[string]any); ok {
			list[i] = omit(source, "targetRevision")
		}
	}
	out := omit(spec, "sources")
	out["sources"] = list
	return out
}

// omit copies an object without one of its members.
func omit(obj map[string]any, name string) map[string]any {
	out := make(map[string]any, len(obj))
	for k, v := range obj {
		if k != name {
			out[k] = v
		}
	}
	return out
}
