package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/syncgate/syncgate/plugin/live"
)

// variables are those of a container, with what it takes from ConfigMaps. blind
// says that some that begin with a prefix may be missing or other: of a Secret,
// say, which is not read. That is a warning, too.
func (r *Report) variables(ctx context.Context, c *live.Cluster, namespace string, container map[string]any, prefix string) (env map[string]string, blind bool, err error) {
	env = map[string]string{}
	unseen := func(what string) {
		blind = true
		r.Warnings = append(r.Warnings, fmt.Sprintf("container %s takes %s, which is not looked at: what is said of its %s* variables holds without that", clip(text(container, "name")), what, prefix))
	}
	maps := map[string]map[string]string{}
	read := func(name string) (map[string]string, error) {
		if data, ok := maps[name]; ok {
			return data, nil
		}
		data, _, err := configMap(ctx, c, namespace, name)
		maps[name] = data
		return data, err
	}
	// As the kubelet does: envFrom first, the later over the earlier.
	for _, x := range list(container, "envFrom") {
		from, _ := x.(map[string]any)
		if name := text(child(from, "configMapRef"), "name"); name != "" {
			data, err := read(name)
			if err != nil {
				return nil, false, err
			}
			for key, value := range data {
				env[text(from, "prefix")+key] = value
			}
			continue
		}
		if p := text(from, "prefix"); strings.HasPrefix(p, prefix) || strings.HasPrefix(prefix, p) {
			unseen("variables from Secret " + clip(text(child(from, "secretRef"), "name")))
		}
	}
	for _, x := range list(container, "env") {
		e, _ := x.(map[string]any)
		name := text(e, "name")
		from := child(e, "valueFrom")
		switch ref := child(from, "configMapKeyRef"); {
		case len(from) == 0:
			env[name] = text(e, "value")
		case len(ref) > 0:
			data, err := read(text(ref, "name"))
			if err != nil {
				return nil, false, err
			}
			if value, ok := data[text(ref, "key")]; ok {
				env[name] = value
			}
		default:
			delete(env, name)
			if strings.HasPrefix(name, prefix) {
				unseen("variable " + clip(name) + " from elsewhere")
			}
		}
	}
	return env, blind, nil
}

// mountPath is where a container has a volume; empty: nowhere.
func mountPath(container map[string]any, volume string) string {
	for _, x := range list(container, "volumeMounts") {
		if m, _ := x.(map[string]any); text(m, "name") == volume {
			return text(m, "mountPath")
		}
	}
	return ""
}
