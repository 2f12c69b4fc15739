package sasl

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Rules are the rules of security.auth_to_local, which shorten Kerberos names. The first
// rule that applies decides.
type Rules []Rule

// Rule is one rule: DEFAULT, or RULE:[n:text](expression)s/from/to/g, which may be followed by /L.
//
// A RULE applies to principals of n components, 1 or 2, if its text, in which $0 stands for the realm
// and $1 and $2 for the components, matches the expression as a whole. The short name is that
// text after the substitution; g replaces every match, and L converts the name to lower case.
// L comes from Hadoop, and ZooKeeper does not know it.
//
// DEFAULT applies to principals of the default realm. The short name is their first component.
type Rule struct {
	text       string
	isDefault  bool
	components int
	format     []piece // the text with the references $0, $1 and $2
	match      *regexp.Regexp
	from       *regexp.Regexp // nil if there is no substitution
	to         []piece
	all, lower bool
}

// piece is a literal text, or if the text is empty, a reference to a component or a group.
type piece struct {
	literal string
	ref     int
}

// String returns the rule in the form in which it was read.
func (r Rule) String() string { return r.text }

// rulePattern describes a RULE after its first word.
var rulePattern = regexp.MustCompile(`^\[(\d*):([^\]]*)\](\(([^)]*)\))?(s/([^/]*)/([^/]*)/(g?))?(/?L)?`)

// ParseRules reads rules, separated by white space or by nothing. An error names the rule and
// what is wrong with it.
func ParseRules(text string) (Rules, error) {
	rules := Rules{}
	for rest := strings.TrimSpace(text); rest != ""; rest = strings.TrimLeft(rest, blanks) {
		r, err := nextRule(rest)
		if err != nil {
			return nil, fmt.Errorf("rule %d of security.auth_to_local, %s: %w", len(rules)+1, quoteShort(ruleText(rest)), err)
		}
		rules = append(rules, r)
		rest = rest[len(r.text):]
	}
	return rules, nil
}

// ruleText returns the part of rest that an error shows.
func ruleText(rest string) string {
	text, _, _ := strings.Cut(rest, "\n")
	if i := strings.Index(text[1:], "RULE:"); i >= 0 {
		text = text[:i+1]
	}
	return strings.TrimRight(text, blanks)
}

const defaultRule, rulePrefix = "DEFAULT", "RULE:"

func nextRule(rest string) (Rule, error) {
	if strings.HasPrefix(rest, defaultRule) {
		return Rule{text: defaultRule, isDefault: true}, nil
	}
	body, ok := strings.CutPrefix(rest, rulePrefix)
	m := rulePattern.FindStringSubmatch(body)
	if !ok || m == nil {
		return Rule{}, fmt.Errorf("expected DEFAULT or RULE:[n:text](expression)s/from/to/g")
	}
	r := Rule{text: rulePrefix + m[0], all: m[8] == "g", lower: m[9] != ""}
	var err error
	if r.components, err = strconv.Atoi(m[1]); err != nil {
		return Rule{}, fmt.Errorf("%q is not a number of components; expected 1 or 2", m[1])
	}
	if r.format, err = formatPieces(m[2], r.components); err != nil {
		return Rule{}, err
	}
	if m[3] != "" {
		if r.match, err = compileJava(`\A(?:`+m[4]+`)\z`, m[4]); err != nil {
			return Rule{}, err
		}
	}
	if m[5] == "" {
		return r, nil
	}
	if r.from, err = compileJava(m[6], m[6]); err != nil {
		return Rule{}, err
	}
	r.to, err = replacementPieces(m[7], r.from.NumSubexp())
	return r, err
}

// compileJava compiles an expression that was written for Java. The source is the part that
// the operator wrote.
func compileJava(expression, source string) (*regexp.Regexp, error) {
	if what := javaOnly(source); what != "" {
		return nil, fmt.Errorf("the expression %q has %s, which is not supported; write it without", source, what)
	}
	re, err := regexp.Compile(expression)
	if err != nil {
		return nil, fmt.Errorf("the expression %q is not supported (%w); it must be a regular expression of Go's syntax, which has no look-around and no back-references", source, err)
	}
	return re, nil
}

// javaOnly describes the first construct in an expression that both Java and Go accept, but in
// different senses. It returns an empty text if there is none.
func javaOnly(source string) string {
	class := false
	for i := 0; i < len(source); i++ {
		switch c := source[i]; {
		case c == '\\':
			i++
		case class && c == '[':
			return "a class inside a class"
		case class && strings.HasPrefix(source[i:], "&&"):
			return "an intersection of classes"
		case c == '[':
			class = true
			// A bracket that comes first belongs to the class.
			if rest := strings.TrimPrefix(source[i+1:], "^"); strings.HasPrefix(rest, "]") {
				i = len(source) - len(rest)
			}
		case c == ']':
			class = false
		}
	}
	return ""
}

// formatPieces splits a text with references $0 to $n.
func formatPieces(format string, components int) ([]piece, error) {
	var out []piece
	for format != "" {
		literal, rest, found := strings.Cut(format, "$")
		if literal != "" {
			out = append(out, piece{literal: literal})
		}
		if !found {
			break
		}
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		n, err := strconv.Atoi(rest[:digits])
		if err != nil || n > components {
			return nil, fmt.Errorf("$%s in %q; expected $0 to $%d", rest[:digits], format, components)
		}
		out = append(out, piece{ref: n})
		format = rest[digits:]
	}
	return out, nil
}

// replacementPieces splits a replacement in Java's syntax. $1 is a reference to a group; it takes as many
// digits as lead to an existing group. A backslash stands before a character that is to be taken
// literally.
func replacementPieces(to string, groups int) ([]piece, error) {
	var out []piece
	for i := 0; i < len(to); i++ {
		switch c := to[i]; {
		case c == '\\' && i+1 == len(to):
			return nil, fmt.Errorf("the replacement %q ends with a backslash", to)
		case c == '\\':
			i++
			out = append(out, piece{literal: to[i : i+1]})
		case c == '$':
			if i+1 == len(to) || to[i+1] < '0' || to[i+1] > '9' {
				return nil, fmt.Errorf(`a $ in the replacement %q is not followed by the number of a group; write \$ for a dollar`, to)
			}
			i++
			n := int(to[i] - '0')
			for n <= groups && i+1 < len(to) && to[i+1] >= '0' && to[i+1] <= '9' && n*10+int(to[i+1]-'0') <= groups {
				i++
				n = n*10 + int(to[i]-'0')
			}
			if n > groups {
				return nil, fmt.Errorf("the replacement %q names group %d; the expression has %d groups", to, n, groups)
			}
			out = append(out, piece{ref: n})
		default:
			out = append(out, piece{literal: to[i : i+1]})
		}
	}
	return out, nil
}

// apply returns the short name that the first applicable rule gives. There is none if no rule
// applies, or if the rule's result is not a short name because it still has a slash or an @.
func (rs Rules) apply(p Principal, defaultRealm string) (string, bool) {
	params := []string{p.Realm, p.Service}
	if p.Host != "" {
		params = append(params, p.Host)
	}
	for _, r := range rs {
		if short, ok := r.apply(params, defaultRealm); ok {
			return short, short != "" && !strings.ContainsAny(short, "/@")
		}
	}
	return "", false
}

// apply returns the rule's result. The params are the realm and the components.
func (r *Rule) apply(params []string, defaultRealm string) (string, bool) {
	if r.isDefault {
		return params[1], params[0] == defaultRealm
	}
	if len(params)-1 != r.components {
		return "", false
	}
	var text strings.Builder
	for _, p := range r.format {
		if p.literal != "" {
			text.WriteString(p.literal)
		} else {
			text.WriteString(params[p.ref])
		}
	}
	result := text.String()
	if r.match != nil && !r.match.MatchString(result) {
		return "", false
	}
	if r.from != nil {
		result = r.substitute(result)
	}
	if r.lower {
		result = strings.ToLower(result)
	}
	return result, true
}

// substitute replaces the first match or all matches.
func (r *Rule) substitute(s string) string {
	count := 1
	if r.all {
		count = -1
	}
	var b strings.Builder
	last := 0
	for _, m := range r.from.FindAllStringSubmatchIndex(s, count) {
		b.WriteString(s[last:m[0]])
		for _, p := range r.to {
			switch {
			case p.literal != "":
				b.WriteString(p.literal)
			case m[2*p.ref] >= 0:
				b.WriteString(s[m[2*p.ref]:m[2*p.ref+1]])
			}
		}
		last = m[1]
	}
	b.WriteString(s[last:])
	return b.String()
}
