package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// special types have a JSON form of their own.
var special = map[string]string{
	"k8s.io/apimachinery/pkg/apis/meta/v1.Duration":        "duration",
	"k8s.io/apimachinery/pkg/apis/meta/v1.Time":            "time",
	"k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime":       "microtime",
	"k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1":        "raw",
	"k8s.io/apimachinery/pkg/runtime.RawExtension":         "raw",
	"k8s.io/apimachinery/pkg/api/resource.Quantity":        "quantity",
	"k8s.io/apimachinery/pkg/api/resource.QuantityValue":   "quantity",
	"k8s.io/apimachinery/pkg/util/intstr.IntOrString":      "intorstring",
	"k8s.io/component-base/logs/api/v1.TimeOrMetaDuration": "duration-or-nanoseconds",
}

var marshaler = reflect.TypeOf((*json.Marshaler)(nil)).Elem()

// table is the struct types of a family: type name, then JSON name, then a description in words.
type table map[string]map[string]string

func types() (any, error) {
	answer := map[string]table{}
	for family, objects := range families {
		walker := walker{table: table{}, packages: map[string]string{}}
		for _, object := range objects {
			if _, err := walker.expression(reflect.TypeOf(object)); err != nil {
				return nil, err
			}
		}
		answer[family] = walker.table
	}
	return answer, nil
}

type walker struct {
	table    table
	packages map[string]string
}

// expression says what a type is: a scalar's kind, "*T", "[]T", "map T", or the name of a struct type, which is added to the table.
func (w *walker) expression(t reflect.Type) (string, error) {
	if name, found := special[t.PkgPath()+"."+t.Name()]; found {
		return name, nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		element, err := w.expression(t.Elem())
		return "*" + element, err
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes", nil
		}
		element, err := w.expression(t.Elem())
		return "[]" + element, err
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return "", fmt.Errorf("%s: keys are not strings", t)
		}
		element, err := w.expression(t.Elem())
		return "map " + element, err
	case reflect.Struct:
		return t.Name(), w.structure(t)
	case reflect.Bool, reflect.String, reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		if t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler) {
			return "", fmt.Errorf("%s has a JSON form of its own", t)
		}
		return t.Kind().String(), nil
	}
	return "", fmt.Errorf("%s: no word for %s", t, t.Kind())
}

func (w *walker) structure(t reflect.Type) error {
	if known, found := w.packages[t.Name()]; found {
		if known != t.PkgPath() {
			return fmt.Errorf("%s is in %s and in %s", t.Name(), known, t.PkgPath())
		}
		return nil
	}
	if t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler) {
		return fmt.Errorf("%s.%s has a JSON form of its own", t.PkgPath(), t.Name())
	}
	w.packages[t.Name()] = t.PkgPath()
	fields := map[string]string{}
	w.table[t.Name()] = fields
	return w.fields(t, fields)
}

func (w *walker) fields(t reflect.Type, into map[string]string) error {
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" || !field.IsExported() {
			continue
		}
		if field.Anonymous && name == "" {
			if err := w.fields(field.Type, into); err != nil {
				return err
			}
			continue
		}
		if name == "" {
			name = field.Name
		}
		expression, err := w.expression(field.Type)
		if err != nil {
			return fmt.Errorf("%s.%s: %w", t.Name(), field.Name, err)
		}
		words := []string{expression}
		for _, option := range strings.Split(options, ",") {
			if option == "omitempty" || option == "omitzero" {
				words = append(words, option)
			}
		}
		if strategy := field.Tag.Get("patchStrategy"); strategy != "" {
			words = append(words, "patch="+strategy)
		}
		if key := field.Tag.Get("patchMergeKey"); key != "" {
			words = append(words, "key="+key)
		}
		into[name] = strings.Join(words, "; ")
	}
	return nil
}
