package config

import (
	"reflect"
	"testing"
)

// equal compares two configurations field by field.
func equal(t *testing.T, got, want *Config) {
	t.Helper()
	g, w := reflect.ValueOf(*got), reflect.ValueOf(*want)
	for i := range g.NumField() {
		if !g.Type().Field(i).IsExported() {
			continue
		}
		if a, b := g.Field(i).Interface(), w.Field(i).Interface(); !reflect.DeepEqual(a, b) {
			t.Errorf("%s: got %+v, want %+v", g.Type().Field(i).Name, a, b)
		}
	}
}
