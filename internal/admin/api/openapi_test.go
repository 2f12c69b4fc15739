package api

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var writeOpenAPI = flag.Bool("openapi", false, "write openapi.json instead of comparing with it")

// TestOpenAPI compares openapi.json with the table of routes and with the Go types of requests and answers, in both
// directions: the file must describe every route, method, parameter, status and field, and nothing else. Texts that come
// from comments may differ. Write the file anew with go test ./internal/admin/api -run TestOpenAPI -openapi
func TestOpenAPI(t *testing.T) {
	d := describer{t: t, schemas: object{}, types: map[string]reflect.Type{}, comments: comments(t, "../view", "../operate", "../elog", "../history", "../trace", ".")}
	want := d.document()
	text, err := json.MarshalIndent(want, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	if *writeOpenAPI {
		if err := os.WriteFile("openapi.json", text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have := plain(t, description); !bytes.Equal(plain(t, text), have) {
		t.Error("openapi.json does not describe the handlers; compare it with what go test ./internal/admin/api -run TestOpenAPI -openapi writes")
	}
}

// plain returns a description without the texts that come from comments, which may differ.
func plain(t *testing.T, text []byte) []byte {
	t.Helper()
	var d any
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	schemas, _ := at(d, "components", "schemas").(object)
	for _, s := range schemas {
		delete(s.(object), "description")
		properties, _ := at(s, "properties").(object)
		for _, p := range properties {
			delete(p.(object), "description")
		}
	}
	out, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

type object = map[string]any

// describer builds the description from the routes and types.
type describer struct {
	t        *testing.T
	schemas  object
	types    map[string]reflect.Type // the Go types of the schemas
	comments map[string]string       // by type, and by type and field
}

func (d *describer) document() object {
	paths := object{}
	for _, r := range routes {
		at, _ := paths[r.path].(object)
		if at == nil {
			at = object{}
			paths[r.path] = at
		}
		at[strings.ToLower(r.method)] = d.operation(&r)
	}
	d.schema(typeOf[Problem]())
	return object{
		"openapi": "3.1.0",
		"info": object{"title": "Bellwether", "version": "1",
			"description": "What operators see of a Bellwether server, and what they change. Requests from the machine of the server may look; all others, and changes, need an operator who is signed in."},
		"paths": paths,
		"components": object{"schemas": d.schemas, "securitySchemes": object{
			"token": object{"type": "http", "scheme": "bearer", "description": "the token of an operator"}}},
		"security": []any{object{}, object{"token": []any{}}},
	}
}

func (d *describer) operation(r *route) object {
	op := object{"operationId": r.id, "summary": r.summary, "responses": d.responses(r)}
	var params []any
	for _, p := range r.params {
		kind := "string"
		if p.integer {
			kind = "integer"
		}
		params = append(params, object{"name": p.name, "in": p.in, "description": p.about, "required": p.required, "schema": object{"type": kind}})
	}
	if params != nil {
		op["parameters"] = params
	}
	if r.body != nil {
		op["requestBody"] = object{"required": true, "content": object{"application/json": object{"schema": d.schema(r.body)}}}
	}
	if r.body != nil || r.operator {
		op["security"] = []any{object{"token": []any{}}}
	}
	return op
}

func (d *describer) responses(r *route) object {
	ok := object{"description": "done"}
	switch {
	case r.answer != nil:
		ok["content"] = object{"application/json": object{"schema": d.schema(r.answer)}}
	case r.media != "":
		ok["content"] = object{r.media: object{}}
	}
	all := object{"200": ok}
	for _, status := range r.errors {
		all[strconv.Itoa(status)] = object{"description": "see the body", "content": object{"application/json": object{"schema": object{"$ref": "#/components/schemas/Problem"}}}}
	}
	return all
}

// schema returns the schema of a type. For a struct, it stores the schema under the name of the type and returns a
// reference.
func (d *describer) schema(t reflect.Type) object {
	switch {
	case t == typeOf[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case t == typeOf[[]byte]():
		return object{"type": "string", "contentEncoding": "base64"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return d.schema(t.Elem())
	case reflect.Slice:
		return object{"type": "array", "items": d.schema(t.Elem())}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint64:
		return object{"type": "integer"}
	case reflect.Struct:
		name := strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
		if other := d.types[name]; other != nil && other != t {
			d.t.Fatalf("%v and %v have the same name in the description", t, other)
		}
		if d.types[name] = t; d.schemas[name] == nil {
			d.schemas[name] = object{} // for types that contain themselves
			d.schemas[name] = d.fields(t)
		}
		return object{"$ref": "#/components/schemas/" + name}
	}
	d.t.Fatalf("a field of the type %v cannot be described", t)
	return nil
}

func (d *describer) fields(t reflect.Type) object {
	properties, required := object{}, []any{}
	for f := range fieldsOf(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || f.Anonymous {
			d.t.Fatalf("%v.%s has no name in JSON", t, f.Name)
		}
		s := d.schema(f.Type)
		if about := d.comments[t.Name()+"."+f.Name]; about != "" {
			s["description"] = about
		}
		properties[name] = s
		if options != "omitempty" {
			required = append(required, name)
		}
	}
	return object{"type": "object", "description": d.comments[t.Name()], "properties": properties, "required": required, "additionalProperties": false}
}

// fieldsOf yields the fields that are in JSON: the exported ones.
func fieldsOf(t reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && !yield(f) {
				return
			}
		}
	}
}

// comments returns the comments of the types in the Go files of folders, and of their fields.
func comments(t *testing.T, dirs ...string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, dir := range dirs {
		files, err := filepath.Glob(dir + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatal(dir, err)
		}
		for _, name := range files {
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				if g, ok := d.(*ast.GenDecl); ok {
					typeComments(g, all)
				}
			}
		}
	}
	return all
}

func typeComments(g *ast.GenDecl, all map[string]string) {
	plain := func(c *ast.CommentGroup) string { return strings.Join(strings.Fields(c.Text()), " ") }
	for _, spec := range g.Specs {
		t, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		all[t.Name.Name] = plain(g.Doc)
		s, ok := t.Type.(*ast.StructType)
		if !ok {
			continue
		}
		for _, f := range s.Fields.List {
			for _, n := range f.Names {
				all[t.Name.Name+"."+n.Name] = strings.TrimSpace(plain(f.Doc) + " " + plain(f.Comment))
			}
		}
	}
}

// TestRoutesAreListedOnce shows that names and paths are unambiguous.
func TestRoutesAreListedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range routes {
		for _, key := range []string{r.id, r.method + " " + r.path} {
			if seen[key] {
				t.Errorf("%s is listed twice", key)
			}
			seen[key] = true
		}
		if !slices.IsSorted(r.errors) {
			t.Errorf("%s: the statuses are not in order", r.id)
		}
	}
	if len(slices.Collect(maps.Keys(seen))) < 2*15 {
		t.Errorf("only %d routes", len(seen)/2)
	}
}
