package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"log"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
)

// source finds type declarations by "core/v1.PodSpec" (k8s.io/api) or
// "apimachinery/meta/v1.LabelSelector" (k8s.io/apimachinery/pkg/apis/...).
type source struct {
	dirs map[string]string
	pkgs map[string]*pkg
}

type pkg struct {
	name    string
	types   map[string]ast.Expr
	consts  map[string]string            // string constants
	imports map[string]map[string]string // type name -> alias -> package name in our notation
}

func (s *source) load(name string) *pkg {
	if p := s.pkgs[name]; p != nil {
		return p
	}
	p := &pkg{name: name, types: map[string]ast.Expr{}, consts: map[string]string{}, imports: map[string]map[string]string{}}
	s.pkgs[name] = p
	files, err := filepath.Glob(filepath.Join(s.dir(name), "*.go"))
	if err != nil || len(files) == 0 {
		log.Fatalf("no sources for %s", name)
	}
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") || strings.HasPrefix(filepath.Base(f), "zz_") || strings.HasSuffix(f, ".pb.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), f, nil, parser.ParseComments)
		if err != nil {
			log.Fatal(err)
		}
		p.add(file)
	}
	return p
}

func (p *pkg) add(file *ast.File) {
	imports := map[string]string{}
	for _, i := range file.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		n := notation(path)
		alias := path[strings.LastIndex(path, "/")+1:]
		if i.Name != nil {
			alias = i.Name.Name
		}
		imports[alias] = n
	}
	for _, d := range file.Decls {
		gd, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, sp := range gd.Specs {
			switch t := sp.(type) {
			case *ast.TypeSpec:
				p.types[t.Name.Name] = t.Type
				p.imports[t.Name.Name] = imports
			case *ast.ValueSpec:
				for i, n := range t.Names {
					if i < len(t.Values) {
						if lit, ok := t.Values[i].(*ast.BasicLit); ok && lit.Kind == token.STRING {
							p.consts[n.Name] = lit.Value
						}
					}
				}
			}
		}
	}
}

func notation(path string) string {
	if n, ok := strings.CutPrefix(path, "k8s.io/apimachinery/pkg/apis/"); ok {
		return "apimachinery/" + n
	}
	if n, ok := strings.CutPrefix(path, "k8s.io/apimachinery/pkg/"); ok {
		return "apimachinery/" + n
	}
	if n, ok := strings.CutPrefix(path, "k8s.io/api/"); ok {
		return n
	}
	return path
}

func (s *source) dir(name string) string {
	if n, ok := strings.CutPrefix(name, "apimachinery/meta/"); ok {
		return filepath.Join(s.dirs["k8s.io/apimachinery"], "pkg/apis/meta", n)
	}
	if n, ok := strings.CutPrefix(name, "apimachinery/"); ok {
		return filepath.Join(s.dirs["k8s.io/apimachinery"], "pkg", n)
	}
	return filepath.Join(s.dirs["k8s.io/api"], name)
}

// resolve names the type that an identifier or selector stands for. Import
// aliases are per file; the API packages use the same alias for the same
// package throughout, so any file of the package will do.
func (s *source) resolve(p *pkg, e ast.Expr) string {
	switch t := e.(type) {
	case *ast.StarExpr:
		return s.resolve(p, t.X)
	case *ast.Ident:
		return p.name + "." + t.Name
	case *ast.SelectorExpr:
		alias := t.X.(*ast.Ident).Name
		for _, imports := range p.imports {
			if n := imports[alias]; n != "" {
				return n + "." + t.Sel.Name
			}
		}
		log.Fatalf("unknown import %s in %s", alias, p.name)
	}
	log.Fatalf("cannot resolve %T", e)
	return ""
}

func (s *source) find(ref string) (*pkg, ast.Expr) {
	i := strings.LastIndex(ref, ".")
	p := s.load(ref[:i])
	t := p.types[ref[i+1:]]
	if t == nil {
		log.Fatalf("type %s not found", ref)
	}
	return p, t
}

func jsonName(f *ast.Field) (name string, inline bool) {
	if f.Tag == nil {
		return "", false
	}
	tag, _ := strconv.Unquote(f.Tag.Value)
	v := reflect.StructTag(tag).Get("json")
	name, _, _ = strings.Cut(v, ",")
	if name == "" && len(f.Names) == 0 { // embedded: its members stand inline
		if sel, ok := f.Type.(*ast.SelectorExpr); ok && sel.Sel.Name == "TypeMeta" {
			return "", false
		}
		return "", true
	}
	return name, false
}

type marker struct {
	list, def, patchKey string
	keys                []string
}

func markers(f *ast.Field) marker {
	var m marker
	if f.Tag != nil {
		tag, _ := strconv.Unquote(f.Tag.Value)
		m.patchKey = reflect.StructTag(tag).Get("patchMergeKey")
	}
	if f.Doc == nil {
		return m
	}
	for _, c := range f.Doc.List {
		line := strings.TrimSpace(strings.TrimPrefix(c.Text, "//"))
		if v, ok := strings.CutPrefix(line, "+listType="); ok {
			m.list = v
		}
		if v, ok := strings.CutPrefix(line, "+listMapKey="); ok {
			m.keys = append(m.keys, v)
		}
		if v, ok := strings.CutPrefix(line, "+default="); ok {
			m.def = literal(v)
		}
	}
	return m
}

// literal turns a +default marker into a Go literal. References to constants
// are in defaults (they need the constant's value).
func literal(v string) string {
	switch {
	case strings.HasPrefix(v, `"`), v == "true", v == "false":
		return v
	case strings.HasPrefix(v, "ref("):
		return ""
	}
	if _, err := strconv.ParseInt(v, 10, 64); err == nil {
		return "num(" + strconv.Quote(v) + ")"
	}
	return ""
}
