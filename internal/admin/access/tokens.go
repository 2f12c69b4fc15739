package access

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"bellwether/internal/secure"
)

// Bounds of the files that name operators.
const (
	fileMax      = 1 << 20 // bytes
	operatorsMax = 1000
	nameMax      = 64
	tokenMin     = 16 // characters; a shorter token can be guessed
	tokenMax     = 1024
)

// tokenSum is the hash of a token. The token itself is not kept.
type tokenSum = [sha256.Size]byte

// operators holds who may sign in. It does not change.
type operators struct {
	tokens   []tokenOf
	subjects map[string]string // the name of an operator by the subject of the certificate
}

type tokenOf struct {
	name string
	sum  tokenSum
}

// none reports whether nobody may sign in.
func (o *operators) none() bool { return len(o.tokens) == 0 && len(o.subjects) == 0 }

// byToken returns the operator with a token. It takes as long for a wrong token as for a right one.
func (o *operators) byToken(token string) (name string, sum tokenSum, ok bool) {
	sum = sha256.Sum256([]byte(token))
	found := -1
	for i := range o.tokens {
		same := subtle.ConstantTimeCompare(o.tokens[i].sum[:], sum[:])
		found = subtle.ConstantTimeSelect(same, i, found)
	}
	if found < 0 {
		return "", sum, false
	}
	return o.tokens[found].name, sum, true
}

// holds reports whether an operator still has a token.
func (o *operators) holds(name string, sum tokenSum) bool {
	for _, t := range o.tokens {
		if t.name == name && t.sum == sum {
			return true
		}
	}
	return false
}

// readOperators reads both files; an empty name means that there is none.
func readOperators(tokenFile, certificateFile string) (*operators, error) {
	o := &operators{subjects: map[string]string{}}
	seen := map[tokenSum]bool{}
	err := eachLine("admin.tokenFile", tokenFile, "NAME TOKEN", func(name, token string) string {
		sum := sha256.Sum256([]byte(token))
		switch {
		case strings.ContainsAny(token, " \t"):
			return "has more than a name and a token"
		case len(token) < tokenMin:
			return fmt.Sprintf("has a token of %d characters; at least %d are needed, for example the output of: openssl rand -hex 32", len(token), tokenMin)
		case len(token) > tokenMax:
			return fmt.Sprintf("has a token of more than %d characters", tokenMax)
		case seen[sum]:
			return "has the token of another line"
		}
		seen[sum] = true
		o.tokens = append(o.tokens, tokenOf{name, sum})
		return ""
	})
	if err != nil {
		return nil, err
	}
	err = eachLine("admin.certificateFile", certificateFile, "NAME SUBJECT", func(name, subject string) string {
		switch {
		case !secure.ValidSubject(subject):
			return "has no subject of the form CN=alice,O=example after the name"
		case o.subjects[subject] != "":
			return "has the subject of another line"
		}
		o.subjects[subject] = name
		return ""
	})
	return o, err
}

// eachLine calls add with the name and the rest of each line of a file. add returns what is
// wrong with the line; empty: nothing. Errors name the line but not its rest, which may be a secret.
func eachLine(key, file, form string, add func(name, rest string) string) error {
	if file == "" {
		return nil
	}
	text, err := readFile(file)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	n, at := 0, 0
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		at++
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		name, rest := line, ""
		if i := strings.IndexAny(line, " \t"); i >= 0 {
			name, rest = line[:i], strings.TrimSpace(line[i:])
		}
		n++
		switch {
		case rest == "":
			return fmt.Errorf("%s: line %d of %s is not of the form %s", key, at, file, form)
		case !validName(name):
			return fmt.Errorf("%s: line %d of %s: a name has 1 to %d letters, digits or characters of ._@-", key, at, file, nameMax)
		case n > operatorsMax:
			return fmt.Errorf("%s: %s has more than %d lines", key, file, operatorsMax)
		}
		if text := add(name, rest); text != "" {
			return fmt.Errorf("%s: line %d of %s %s", key, at, file, text)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: line %d of %s is too long: %w", key, at+1, file, err)
	}
	if n == 0 {
		return fmt.Errorf("%s: %s has no line of the form %s", key, file, form)
	}
	return nil
}

// readFile reads a file of bounded size.
func readFile(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, fileMax+1))
	if err == nil && len(text) > fileMax {
		err = errors.New(file + " is longer than 1 MiB")
	}
	return text, err
}

func validName(name string) bool {
	const others = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._@-"
	return len(name) > 0 && len(name) <= nameMax && strings.Trim(name, others) == ""
}
