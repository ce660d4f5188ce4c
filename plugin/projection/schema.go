package projection

import (
	"encoding/json"
	"strings"
)

//go:generate go run ./internal/schemagen schema_gen.go
//go:generate go run ./internal/docgen ../../docs/spec/gated-fields.md

// fieldSpec is one member of an API type, as schemagen writes it down.
type fieldSpec struct {
	name, typ string
	pointer   bool
	list      string
	keys      []string
	def       any
}

// emptyObject is the default of a field that the API server fills in as {}.
const emptyObject = "{}"

// num keeps generated default numbers in the form decoded JSON has.
func num(s string) json.Number { return json.Number(s) }

type shapeKind int

const (
	anyShape shapeKind = iota // unknown to the API types: kept as written
	stringShape
	boolShape
	intShape
	floatShape
	intOrStringShape
	quantityShape
	structShape
	mapShape
	listShape
)

// shape says how a value of an API type is normalised: what may be dropped,
// what is a set, and by which keys list items are named.
type shape struct {
	kind   shapeKind
	name   string // of a struct: "core/v1.Probe"
	fields map[string]*member
	elem   *shape   // of a map or list
	item   *member  // of a map or list: an element, whose zero value is a value
	keys   []string // merge keys of a list
	set    bool     // a list whose order and duplicates mean nothing
}

// member is a field of a struct shape.
type member struct {
	shape   *shape
	pointer bool // zero values are kept as written
	def     any  // what the API server fills in when absent; nil if nothing
}

// sets are lists whose order means nothing although the API types call them
// atomic or do not say (the API server accepts duplicates in all of them).
var sets = map[string]bool{
	"core/v1.PodSpec.imagePullSecrets":                     true,
	"core/v1.ServiceAccount.imagePullSecrets":              true,
	"core/v1.Capabilities.add":                             true,
	"core/v1.Capabilities.drop":                            true,
	"core/v1.PodSecurityContext.supplementalGroups":        true,
	"core/v1.ServiceSpec.externalIPs":                      true,
	"core/v1.ServiceSpec.loadBalancerSourceRanges":         true,
	"networking/v1.NetworkPolicySpec.policyTypes":          true,
	"rbac/v1.RoleBinding.subjects":                         true,
	"core/v1.PodSpec.tolerations":                          true,
	"core/v1.PersistentVolumeSpec.accessModes":             true,
	"core/v1.PersistentVolumeClaimSpec.accessModes":        true,
	"certificates/v1.CertificateSigningRequestSpec.usages": true,
}

var shapes = compileShapes()

func compileShapes() map[string]*shape {
	out := make(map[string]*shape, len(schemaTypes))
	for name := range schemaTypes {
		out[name] = &shape{kind: structShape, name: name}
	}
	for name, fields := range schemaTypes {
		s := out[name]
		s.fields = make(map[string]*member, len(fields))
		for _, f := range fields {
			sh := shapeOf(out, f.typ)
			if sh.kind == listShape {
				sh = &shape{kind: listShape, elem: sh.elem, item: sh.item, keys: f.keys,
					set: f.list == "set" || sets[name+"."+f.name]}
				if sh.set {
					sh.keys = nil
				}
			}
			s.fields[f.name] = &member{shape: sh, pointer: f.pointer, def: f.def}
		}
	}
	return out
}

func shapeOf(all map[string]*shape, typ string) *shape {
	switch typ {
	case "string", "bytes":
		return &shape{kind: stringShape}
	case "bool":
		return &shape{kind: boolShape}
	case "int":
		return &shape{kind: intShape}
	case "float":
		return &shape{kind: floatShape}
	case "int-or-string":
		return &shape{kind: intOrStringShape}
	case "quantity":
		return &shape{kind: quantityShape}
	case "any":
		return &shape{kind: anyShape}
	}
	if t, ok := strings.CutPrefix(typ, "[]"); ok {
		return collection(listShape, shapeOf(all, t))
	}
	if t, ok := strings.CutPrefix(typ, "map[string]"); ok {
		return collection(mapShape, shapeOf(all, t))
	}
	if s := all[typ]; s != nil {
		return s
	}
	return &shape{kind: anyShape}
}

func collection(kind shapeKind, elem *shape) *shape {
	return &shape{kind: kind, elem: elem, item: &member{shape: elem, pointer: true}}
}

// plainString is a string field; keptString one whose empty value counts, as
// the values of labels and annotations do.
var (
	plainString = &member{shape: &shape{kind: stringShape}}
	keptString  = &member{shape: plainString.shape, pointer: true}
)
