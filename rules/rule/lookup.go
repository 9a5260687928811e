package rule

import (
	"reflect"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
)

// Lookup is the value at a path of JSON names and indexes in a snapshot; nil
// if there is nothing.
func Lookup(s *evidence.Snapshot, path []any) any {
	v := reflect.ValueOf(s)
	for _, p := range path {
		for v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return nil
			}
			v = v.Elem()
		}
		switch key := p.(type) {
		case int:
			if v.Kind() != reflect.Slice || key < 0 || key >= v.Len() {
				return nil
			}
			v = v.Index(key)
		case string:
			switch v.Kind() {
			case reflect.Struct:
				v = fieldByJSON(v, key)
			case reflect.Map:
				v = v.MapIndex(reflect.ValueOf(key))
			default:
				return nil
			}
		}
		if !v.IsValid() {
			return nil
		}
	}
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil
		}
		v = v.Elem()
	}
	return v.Interface()
}

func fieldByJSON(v reflect.Value, name string) reflect.Value {
	t := v.Type()
	for i := range t.NumField() {
		tag, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if tag == name {
			return v.Field(i)
		}
	}
	return reflect.Value{}
}
