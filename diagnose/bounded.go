package diagnose

import "reflect"

// largest is beyond every number that a probe can have measured: bytes of a disk,
// nanoseconds since the epoch. The product of two such numbers still is a number.
const largest = 1e19

// bounded pulls the fractions in v that no probe can have measured back to
// ±largest: a snapshot comes from elsewhere, and 1e308 times ten is no number that
// JSON can hold.
func bounded(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			bounded(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			bounded(v.Field(i))
		}
	case reflect.Slice:
		if !holdsNumbers(v.Type().Elem()) {
			return
		}
		for i := range v.Len() {
			bounded(v.Index(i))
		}
	case reflect.Map:
		if v.Type().Elem().Kind() != reflect.Float64 {
			return
		}
		for _, k := range v.MapKeys() {
			v.SetMapIndex(k, reflect.ValueOf(max(-largest, min(largest, v.MapIndex(k).Float()))).Convert(v.Type().Elem()))
		}
	case reflect.Float64:
		if v.CanSet() {
			v.SetFloat(max(-largest, min(largest, v.Float())))
		}
	}
}

func holdsNumbers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Struct, reflect.Slice, reflect.Map, reflect.Float64:
		return true
	}
	return false
}
