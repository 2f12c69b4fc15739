package sasl

import (
	"fmt"
	"log/slog"
)

// redacted is the text that is printed in place of a Secret.
const redacted = "[secret]"

// Secret is a password or another text that must not be printed. Each way to print or to
// encode it gives a placeholder; Reveal gives the text. The zero value is the empty text.
//
// The text is behind a pointer, because fmt prints unexported fields of a struct without
// asking their methods. So == compares identities, not texts.
type Secret struct {
	text *string
}

// NewSecret returns a Secret that holds text.
func NewSecret(text string) Secret { return Secret{&text} }

// Reveal returns the text.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// Format prints a placeholder, whatever the verb is.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, redacted) }

// String returns a placeholder.
func (s Secret) String() string { return redacted }

// GoString returns a placeholder.
func (s Secret) GoString() string { return redacted }

// LogValue returns a placeholder.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText returns a placeholder; encoding/json and encoding/xml use it too.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
