package config

import (
	"crypto"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"bellwether/internal/ensemble"
)

// set parses value and stores it in the field of c that belongs to k. It reports whether
// the value is allowed; if not, c is unchanged.
func (k *key) set(c *Config, value string) bool {
	if k.into == nil {
		return k.allows(value)
	}
	switch field := k.into(c).(type) {
	case *string:
		if !k.allows(value) {
			return false
		}
		*field = value
	case *[]string:
		*field = splitList(value)
	case *roleField:
		r, err := ensemble.ParseRole(value)
		if err != nil {
			return false
		}
		*field = roleField(r)
	case *[]PathRate:
		all, ok := parsePathRates(value)
		if !ok {
			return false
		}
		*field = all
	case *bool:
		return k.setBool(field, value)
	case *float64:
		f, err := strconv.ParseFloat(value, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || k.form == share && (f < 0 || f > 1) {
			return false
		}
		*field = f
	case *crypto.Hash:
		h, ok := digestHash(value)
		if !ok {
			return false
		}
		*field = h
	default:
		n, ok := k.readNumber(value)
		if !ok {
			return false
		}
		setNumber(field, n, unitOf(k.unit))
	}
	return true
}

// roleField is a role, as a type that set can tell from numbers.
type roleField ensemble.Role

// setNumber stores n units. A negative number does not stand for an amount but for
// "off" or "the default", so it stays negative whatever the unit.
func setNumber(field any, n, unit int64) {
	switch field := field.(type) {
	case *int:
		*field = int(n * unit)
	case *int64:
		*field = n * unit
	case *time.Duration:
		*field = time.Duration(n * unit)
	default:
		panic(fmt.Sprintf("config: a value cannot be stored in a %T", field))
	}
}

// setBool parses a value of form yesNo or boolean.
func (k *key) setBool(field *bool, value string) bool {
	if k.form == yesNo {
		*field = (value == k.exact) == (k.exact == "yes")
		return true
	}
	b, ok := parseBool(value)
	if ok {
		*field = b
	}
	return ok
}

// allows reports whether a value has the form of k.
func (k *key) allows(value string) bool {
	switch k.form {
	case decimal, number:
		_, ok := k.readNumber(value)
		return ok
	case boolean:
		_, ok := parseBool(value)
		return ok
	case fraction:
		_, err := strconv.ParseFloat(value, 64)
		return err == nil
	case word:
		for _, w := range k.words {
			if strings.EqualFold(w, value) {
				return true
			}
		}
		return false
	case path, host:
		return value != "" && !strings.ContainsRune(value, 0)
	}
	return true
}

// readNumber parses a number and reports whether it is in the range of k.
func (k *key) readNumber(value string) (int64, bool) {
	var n int64
	var err error
	if k.form == number {
		n, err = decode(value)
	} else {
		n, err = strconv.ParseInt(value, 10, 64)
	}
	return n, err == nil && n >= k.min && n <= k.highest()
}

func (k *key) highest() int64 {
	if k.max == 0 {
		return math.MaxInt32
	}
	return k.max
}

// decode parses a number as Java's Integer.getInteger does: an optional sign, then
// 0x, 0X or # and hexadecimal digits, or 0 and octal digits, or a decimal number.
func decode(value string) (int64, error) {
	sign, digits := "", value
	if value != "" && (value[0] == '-' || value[0] == '+') {
		sign, digits = value[:1], value[1:]
	}
	base := 10
	switch {
	case strings.HasPrefix(digits, "0x"), strings.HasPrefix(digits, "0X"):
		base, digits = 16, digits[2:]
	case strings.HasPrefix(digits, "#"):
		base, digits = 16, digits[1:]
	case len(digits) > 1 && digits[0] == '0':
		base, digits = 8, digits[1:]
	}
	if digits == "" || digits[0] == '-' || digits[0] == '+' {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseInt(sign+digits, base, 64)
}

func parseBool(value string) (v, ok bool) {
	switch {
	case strings.EqualFold(value, "true"):
		return true, true
	case strings.EqualFold(value, "false"):
		return false, true
	}
	return false, false
}

func splitList(value string) []string {
	var items []string
	for item := range strings.SplitSeq(value, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// digests are the hashes that digestAlg accepts, under their Java names.
var digests = []struct {
	name string
	hash crypto.Hash
}{
	{"SHA1", crypto.SHA1}, {"SHA-1", crypto.SHA1}, {"SHA", crypto.SHA1}, {"MD5", crypto.MD5},
	{"SHA-224", crypto.SHA224}, {"SHA-256", crypto.SHA256}, {"SHA-384", crypto.SHA384}, {"SHA-512", crypto.SHA512},
	{"SHA3-224", crypto.SHA3_224}, {"SHA3-256", crypto.SHA3_256}, {"SHA3-384", crypto.SHA3_384}, {"SHA3-512", crypto.SHA3_512},
}

func digestHash(name string) (crypto.Hash, bool) {
	for _, d := range digests {
		if strings.EqualFold(d.name, name) {
			return d.hash, true
		}
	}
	return 0, false
}

func digestNames() []string {
	var names []string
	for _, d := range digests {
		names = append(names, d.name)
	}
	return names
}

// allowed describes the values that k accepts.
func (k *key) allowed() string {
	switch k.form {
	case decimal, number:
		what := "a number"
		if k.unit != "" {
			what = "a number of " + k.unit
		}
		if k.min == math.MinInt32 && k.max == 0 {
			return what + " that fits in 32 bits"
		}
		return fmt.Sprintf("%s from %d to %d", what, k.min, k.highest())
	case fraction:
		return "a decimal fraction such as 0.33"
	case share:
		return "a decimal fraction from 0 to 1"
	case boolean:
		return "true or false"
	case yesNo:
		if k.exact == "false" {
			return "true or false"
		}
		return "yes or no"
	case word:
		return "one of " + strings.Join(k.shownWords(), ", ")
	case list:
		return "a comma-separated list"
	case pathRates:
		return fmt.Sprintf("a list PATH:NUMBER,PATH:NUMBER of at most %d different absolute paths, with numbers from 1 to %d", pathsMax, rateMax)
	case path:
		return "a path"
	case host:
		return "a host name or address"
	}
	return "any text"
}

// shownWords returns the allowed words; the empty word is shown as "nothing".
func (k *key) shownWords() []string {
	var ws []string
	for _, w := range k.words {
		if w == "" {
			w = "nothing"
		}
		ws = append(ws, w)
	}
	return ws
}
