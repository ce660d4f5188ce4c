package projection

import "strings"

// programVariables are environment variables that decide which program or
// library code runs.
var programVariables = nameSet(
	"LD_*", "DYLD_*", "PATH", "BASH_ENV", "ENV", "*_OPTIONS", "PYTHON*", "PERL5*", "RUBY*",
	"NODE_OPTIONS", "NODE_PATH", "NODE_EXTRA_CA_CERTS", "GIT_SSH*",
	"GIT_EXTERNAL_DIFF", "GIT_CONFIG_*", "LUA_INIT*", "DOTNET_STARTUP_HOOKS", "CORECLR_*", "COR_*",
	"GCONV_PATH", "OPENSSL_CONF", "CLASSPATH", "PROMPT_COMMAND", "R_PROFILE*",
	// A function that bash takes from its environment stands for a command of
	// that name; the rest are read by the interpreters themselves, too.
	"LUA_PATH*", "LUA_CPATH*", "OPENSSL_MODULES", "OPENSSL_ENGINES", "GSS_MECH_CONFIG", "GIT_ASKPASS", "SSH_ASKPASS",
	"GUNICORN_CMD_ARGS", "KUBECONFIG", "AWS_CONFIG_FILE", "npm_config_*", "NPM_CONFIG_*", "GEM_PATH", "GEM_HOME", "BUNDLE_GEMFILE",
	"ASPNETCORE_HOSTINGSTARTUPASSEMBLIES", "DOTNET_ADDITIONAL_DEPS", "DOTNET_SHARED_STORE", "BUN_INSPECT*", "JULIA_LOAD_PATH", "R_LIBS*", "JAVA_HOME",
	"BASH_FUNC_*", "BASHOPTS", "SHELLOPTS", "PS4", "ZDOTDIR", "ERL_*", "GIT_EXEC_PATH", "PHPRC", "PHP_INI_SCAN_DIR",
)

var (
	envShape     = shapes["core/v1.EnvVar"]
	envSource    = shapes["core/v1.EnvVar"].fields["valueFrom"]
	secretKeyRef = shapes["core/v1.EnvVarSource"].fields["secretKeyRef"].shape
	envFromShape = shapes["core/v1.EnvFromSource"]
)

// env adds variables that come from Secrets, and those that decide what runs:
// by name, or because a mount's subPathExpr uses them.
func (w *walker) env(c *container, at string, v any) {
	items, ok := v.([]any)
	if !ok {
		w.wrongType(at, "a list", v)
		return
	}
	for i, x := range items {
		item, ok := x.(map[string]any)
		if !ok {
			w.wrongType(index(at, i), "an object", x)
			continue
		}
		name, ok := item["name"].(string)
		if !ok {
			w.fault(index(at, i), "want a name")
			continue
		}
		w.envVar(c, at, name, item)
	}
}

func (w *walker) envVar(c *container, list, name string, item map[string]any) {
	from, ok := item["valueFrom"].(map[string]any)
	if !ok && item["valueFrom"] != nil {
		w.wrongType(list+key(name)+".valueFrom", "an object", item["valueFrom"])
		return
	}
	counts := programVariables.has(name) || c.expands(name)
	custom := len(w.variables) > 0 && w.isCustom(name)
	if !counts && !custom && from["secretKeyRef"] == nil && !hasUnknown(envShape, item) && !hasUnknown(envSource.shape, from) {
		return // most are like this
	}
	at := list + key(name)
	w.unknown(Command, at, envShape, item)
	if from != nil {
		w.unknown(Secret, at+".valueFrom", envSource.shape, from)
		if ref := from["secretKeyRef"]; ref != nil {
			w.secretKey(at+".valueFrom.secretKeyRef", ref)
		}
	}
	if custom {
		w.customVariable(at, name, item, from)
	}
	if counts {
		w.variable(Command, at, item, from)
	}
}

// variable adds what a variable holds, or where that comes from.
func (w *walker) variable(c Category, at string, item, from map[string]any) {
	if from != nil {
		w.take(c, at+".valueFrom", envSource, from)
		return
	}
	w.take(c, at+".value", keptString, orEmpty(item["value"]))
}

// expands reports whether a mount's subPathExpr uses $(name).
func (c *container) expands(name string) bool {
	for _, m := range c.mounts {
		if s, ok := m.tree["subPathExpr"].(string); ok && strings.Contains(s, "$("+name+")") {
			return true
		}
	}
	return false
}

func (w *walker) secretKey(at string, v any) {
	ref, ok := v.(map[string]any)
	if !ok {
		w.wrongType(at, "an object", v)
		return
	}
	w.take(Secret, at+".name", secretKeyRef.fields["name"], ref["name"])
	w.take(Secret, at+".key", secretKeyRef.fields["key"], ref["key"])
	w.unknown(Secret, at, secretKeyRef, ref)
}

// envFrom adds whole Secrets (secret) and ConfigMaps (command: one can hold
// PATH or LD_PRELOAD). The position counts among the items of one kind.
func (w *walker) envFrom(at string, v any) {
	items, ok := v.([]any)
	if !ok {
		w.wrongType(at, "a list", v)
		return
	}
	var counts [2]int
	for i, x := range items {
		item, ok := x.(map[string]any)
		if !ok {
			w.wrongType(index(at, i), "an object", x)
			continue
		}
		w.unknown(Secret, index(at, i), envFromShape, item)
		for j := range envFromSources {
			f := &envFromSources[j]
			if item[f.name] == nil {
				continue
			}
			ref, ok := item[f.name].(map[string]any)
			if !ok {
				w.wrongType(index(at, i)+"."+f.name, "an object", item[f.name])
				continue
			}
			p := index(at, counts[j])
			counts[j]++
			name := orEmpty(ref["name"])
			if f.cat == Command {
				name = withoutContentHash(name)
			}
			w.take(f.cat, p+"."+f.name+".name", keptString, name)
			w.take(f.cat, p+".prefix", plainString, item["prefix"])
			w.unknown(f.cat, p+"."+f.name, envFromShape.fields[f.name].shape, ref)
		}
	}
}

var envFromSources = []struct {
	name string
	cat  Category
}{{"secretRef", Secret}, {"configMapRef", Command}}

// withoutContentHash takes from a ConfigMap's name the hash that kustomize's
// configMapGenerator puts behind it (sigs.k8s.io/kustomize/api/hasher: ten of
// sixteen characters). Contents of ConfigMaps are free, so a name that follows
// from them has to be.
func withoutContentHash(v any) any {
	s, _ := v.(string)
	base := len(s) - hashSize - 1
	if base < 1 || s[base] != '-' || strings.Trim(s[base+1:], hashAlphabet) != "" {
		return v
	}
	return s[:base]
}

const (
	hashSize     = 10
	hashAlphabet = "2456789bcdfghkmt"
)

func orEmpty(v any) any {
	if v == nil {
		return ""
	}
	return v
}
