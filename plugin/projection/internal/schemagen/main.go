// Command schemagen writes schema_gen.go: the shapes of the Kubernetes API
// types that hold gated fields, read from the sources of k8s.io/api and
// k8s.io/apimachinery. It reads sources, not compiled types, because list
// keys and defaults stand in comment markers (+listType, +listMapKey,
// +default) that reflection cannot see.
package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"log"
	"os"
	"os/exec"
	"sort"
	"strings"
)

// roots are the types that the table of gated fields walks into. Everything
// they reach is written out.
var roots = []string{
	"core/v1.PodTemplateSpec", "core/v1.ServiceSpec", "core/v1.ServiceAccount", "core/v1.Secret",
	"core/v1.PersistentVolumeSpec", "core/v1.PersistentVolumeClaimSpec", "core/v1.Endpoints",
	"apps/v1.StatefulSetSpec",
	"rbac/v1.Role", "rbac/v1.ClusterRole", "rbac/v1.RoleBinding",
	"networking/v1.IngressSpec", "networking/v1.IngressClassSpec", "networking/v1.NetworkPolicySpec",
	"storage/v1.StorageClass", "storage/v1.VolumeAttributesClass", "storage/v1.CSIDriverSpec",
	"node/v1.RuntimeClass", "scheduling/v1.PriorityClass",
	"resource/v1.ResourceClaimSpec", "resource/v1.ResourceClaimTemplateSpec", "resource/v1.DeviceClassSpec",
	"certificates/v1.CertificateSigningRequestSpec", "certificates/v1beta1.ClusterTrustBundleSpec",
	"discovery/v1.EndpointSlice",
	"admissionregistration/v1.ValidatingWebhookConfiguration", "admissionregistration/v1.MutatingWebhookConfiguration",
	"admissionregistration/v1.ValidatingAdmissionPolicySpec", "admissionregistration/v1.ValidatingAdmissionPolicyBindingSpec",
	"admissionregistration/v1.MutatingAdmissionPolicySpec", "admissionregistration/v1.MutatingAdmissionPolicyBindingSpec",
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("schemagen: ")
	if len(os.Args) != 2 {
		log.Fatal("usage: schemagen OUT.go")
	}
	out, err := generate()
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(os.Args[1], out, 0o644); err != nil {
		log.Fatal(err)
	}
}

// generate reads the API sources of the versions in go.mod.
func generate() ([]byte, error) {
	src := &source{dirs: map[string]string{
		"k8s.io/api":          moduleDir("k8s.io/api"),
		"k8s.io/apimachinery": moduleDir("k8s.io/apimachinery"),
	}, pkgs: map[string]*pkg{}}
	g := &generator{src: src, done: map[string][]field{}, used: map[string]bool{}}
	for _, r := range roots {
		g.visit(r)
	}
	for name := range defaults {
		if !g.used[name] {
			return nil, fmt.Errorf("a default of %s, which is no field in reach", name)
		}
	}
	return g.file()
}

func moduleDir(path string) string {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", path).Output()
	if err != nil {
		log.Fatalf("locating %s: %v", path, err)
	}
	return strings.TrimSpace(string(out))
}

// field is one member of a struct as it stands in JSON.
type field struct {
	name, typ string // typ: string|bool|int|float|int-or-string|quantity|any|bytes|[]T|map[string]T|pkg.Type
	pointer   bool
	list      string   // atomic|set|map of a list; granular|atomic of a struct or map
	keys      []string // merge keys of a list
	def       string   // Go literal of the default, "" if none
}

type generator struct {
	src  *source
	done map[string][]field
	used map[string]bool // the defaults that a field was found for
}

func (g *generator) visit(name string) {
	if _, seen := g.done[name]; seen {
		return
	}
	g.done[name] = nil
	p, typ := g.src.find(name)
	st, ok := typ.(*ast.StructType)
	if !ok {
		log.Fatalf("%s is not a struct", name)
	}
	g.done[name] = g.fields(p, st, name)
}

// fields lists the members of a struct, those of inlined structs included.
func (g *generator) fields(p *pkg, st *ast.StructType, owner string) []field {
	var out []field
	for _, f := range st.Fields.List {
		name, inline := jsonName(f)
		if inline {
			ref := g.src.resolve(p, f.Type)
			inner, t := g.src.find(ref)
			out = append(out, g.fields(inner, t.(*ast.StructType), ref)...)
			continue
		}
		if name == "" || name == "-" || name == "status" || (name == "metadata" && owner != "core/v1.PodTemplateSpec") {
			continue // TypeMeta, ObjectMeta and status are not part of the shapes
		}
		fd := field{name: name}
		expr := f.Type
		if star, ok := expr.(*ast.StarExpr); ok {
			fd.pointer, expr = true, star.X
		}
		fd.typ = g.typeOf(p, expr)
		m := markers(f)
		fd.list, fd.keys, fd.def = m.list, m.keys, m.def
		if len(fd.keys) == 0 && m.patchKey != "" {
			fd.list, fd.keys = "map", []string{m.patchKey}
		}
		if fix, ok := defaults[owner+"."+name]; ok {
			fd.def = fix
			g.used[owner+"."+name] = true
		}
		out = append(out, fd)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].name < out[j].name })
	return out
}

// typeOf names the JSON shape of a Go type and visits structs on the way.
func (g *generator) typeOf(p *pkg, e ast.Expr) string {
	switch t := e.(type) {
	case *ast.StarExpr:
		return g.typeOf(p, t.X)
	case *ast.ArrayType:
		if id, ok := t.Elt.(*ast.Ident); ok && id.Name == "byte" {
			return "bytes"
		}
		return "[]" + g.typeOf(p, t.Elt)
	case *ast.MapType:
		return "map[string]" + g.typeOf(p, t.Value)
	case *ast.Ident, *ast.SelectorExpr:
		if id, ok := t.(*ast.Ident); ok {
			if b := basic(id.Name); b != "" {
				return b
			}
		}
		ref := g.src.resolve(p, e)
		if s := special[ref]; s != "" {
			return s
		}
		rp, under := g.src.find(ref)
		if _, ok := under.(*ast.StructType); ok {
			g.visit(ref)
			return ref
		}
		return g.typeOf(rp, under)
	}
	log.Fatalf("unknown type expression %T", e)
	return ""
}

func basic(name string) string {
	switch name {
	case "string", "bool":
		return name
	case "int", "int32", "int64", "uint32", "uint64", "uint8":
		return "int"
	case "float32", "float64":
		return "float"
	}
	return ""
}

// special are types with a JSON form of their own.
var special = map[string]string{
	"apimachinery/util/intstr.IntOrString": "int-or-string",
	"apimachinery/api/resource.Quantity":   "quantity",
	"apimachinery/meta/v1.Time":            "string",
	"apimachinery/meta/v1.MicroTime":       "string",
	"apimachinery/meta/v1.Duration":        "string",
	"apimachinery/runtime.RawExtension":    "any",
	"apimachinery/meta/v1.ObjectMeta":      "any",
	"apimachinery/meta/v1.FieldsV1":        "any",
	"apimachinery/types.UID":               "string",
}

func (g *generator) file() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("// Code generated by internal/schemagen; DO NOT EDIT.\n\npackage projection\n\n")
	fmt.Fprintf(&b, "// schemaVersions are the modules that the shapes were read from.\nvar schemaVersions = %q\n\n", versions())
	b.WriteString("var schemaTypes = map[string][]fieldSpec{\n")
	names := make([]string, 0, len(g.done))
	for n := range g.done {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		fmt.Fprintf(&b, "\t%q: {\n", n)
		for _, f := range g.done[n] {
			fmt.Fprintf(&b, "\t\t{name: %q, typ: %q", f.name, f.typ)
			if f.pointer {
				b.WriteString(", pointer: true")
			}
			if f.list != "" {
				fmt.Fprintf(&b, ", list: %q", f.list)
			}
			if len(f.keys) > 0 {
				fmt.Fprintf(&b, ", keys: %#v", f.keys)
			}
			if f.def != "" {
				fmt.Fprintf(&b, ", def: %s", f.def)
			}
			b.WriteString("},\n")
		}
		b.WriteString("\t},\n")
	}
	b.WriteString("}\n")
	return format.Source(b.Bytes())
}

func versions() string {
	out, err := exec.Command("go", "list", "-m", "k8s.io/api", "k8s.io/apimachinery").Output()
	if err != nil {
		log.Fatal(err)
	}
	return strings.Join(strings.Fields(string(out)), " ")
}
