package sasl

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// TestSecretDoesNotPrint checks that no verb, encoder or logger shows the text, wherever the Secret is
// stored.
func TestSecretDoesNotPrint(t *testing.T) {
	s := NewSecret("tippy-top")
	type outer struct {
		Open   Secret
		hidden Secret
		behind *Secret
		many   map[string]Secret
	}
	x := outer{s, s, &s, map[string]Secret{"a": s}}
	login := DigestLogin{User: "bob", Password: s}
	var out strings.Builder
	for _, v := range []any{s, &s, x, &x, []Secret{s}, login, NewDigestClient(login), NewDigestUsers(ClientService, x.many), fmt.Errorf("with %v", s)} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%c", "%t", "%p"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
		for _, encode := range []func(any) ([]byte, error){json.Marshal, xml.Marshal} {
			b, _ := encode(v)
			out.Write(b)
		}
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "v", v)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "v", v)
		out.Write(log.Bytes())
	}
	all := out.String()
	for _, leak := range []string{"tippy", "7469707079", "746970707", "dGlwcHk", "116 105 112"} {
		if strings.Contains(strings.ToLower(all), strings.ToLower(leak)) {
			t.Errorf("the output has %q", leak)
		}
	}
	if !strings.Contains(all, redacted) || s.Reveal() != "tippy-top" || (Secret{}).Reveal() != "" {
		t.Error("a secret has no placeholder or lost its text")
	}
}
