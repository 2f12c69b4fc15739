package sasl

import (
	"strings"
	"testing"
)

func TestParsePrincipal(t *testing.T) {
	for s, want := range map[string]Principal{
		"bob":                {Service: "bob"},
		"a/b":                {Service: "a/b"},
		"bob@R":              {Service: "bob", Realm: "R"},
		"zookeeper/h.x@R":    {"zookeeper", "h.x", "R"},
		"zookeeper/h.x@R.S ": {"zookeeper", "h.x", "R.S "},
	} {
		if got, err := ParsePrincipal(s); got != want || err != nil || got.String() != s {
			t.Errorf("%s: %#v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "@R", "bob@", "a/@R", "/b@R", "a/b/c@R", "a@b@R", "a@b/c", "@"} {
		if p, err := ParsePrincipal(s); err == nil {
			t.Errorf("%q is %#v", s, p)
		}
	}
}

// TestIDWithoutRule checks that the id is the principal if no rule applies, whatever id the client asks
// for. ZooKeeper would give the client the id "super" here.
func TestIDWithoutRule(t *testing.T) {
	n := Naming{DefaultRealm: "EXAMPLE.COM", RemoveHost: true, RemoveRealm: true}
	if id, err := n.Authorize("bob/h@OTHER.ORG", "super"); id != "bob/h@OTHER.ORG" || err != nil {
		t.Errorf("%q, %v", id, err)
	}
	if id, err := n.Authorize("bob/h@EXAMPLE.COM", "super"); id != "bob" || err != nil {
		t.Errorf("%q, %v", id, err)
	}
}

func TestServicePrincipal(t *testing.T) {
	for _, x := range []struct{ configured, want string }{
		{"zkquorum/_HOST", "zkquorum/h.example.com"},
		{"zkquorum/localhost", "zkquorum/localhost"},
		{"zkquorum/_HOST@R", "zkquorum/_HOST@R"},
		{"_HOST", "_HOST"},
		{"a/b/_HOST", "a/b/_HOST"},
		{"", ""},
	} {
		if got := ServicePrincipal(x.configured, "H.Example.com"); got != x.want {
			t.Errorf("%s: %s, want %s", x.configured, got, x.want)
		}
	}
}

func TestAuthorizePeer(t *testing.T) {
	hosts := []string{"a.example.com", "b.example.com"}
	for _, x := range []struct {
		hosts    []string
		who, as  string
		accepted bool
	}{
		{nil, "test", "test", true},
		{nil, "test", "other", false},
		{hosts, "zkquorum/a.example.com@R", "zkquorum/a.example.com@R", true},
		{hosts, "zkquorum/c.example.com@R", "zkquorum/c.example.com@R", false},
		{hosts, "zkquorum/a.example.com@R", "zkquorum/b.example.com@R", false},
		{hosts, "a.example.com@R", "a.example.com@R", false},
		{hosts, "zkquorum/a.example.com", "zkquorum/a.example.com", false},
		{hosts, "a@b@c", "a@b@c", false},
		{[]string{}, "zkquorum/a.example.com@R", "zkquorum/a.example.com@R", false},
	} {
		id, err := AuthorizePeer(x.hosts)(x.who, x.as)
		if (err == nil) != x.accepted || x.accepted && id != x.who {
			t.Errorf("%v: %q, %v", x, id, err)
		}
	}
}

// TestRulesThatCannotBeRead checks that the error names the rule and the mistake in it.
func TestRulesThatCannotBeRead(t *testing.T) {
	for rules, want := range map[string]string{
		"NONE":                        `rule 1 of security.auth_to_local, "NONE": expected DEFAULT or RULE:[n:text](expression)s/from/to/g`,
		"DEFAULT RULE:[1:$1":          `rule 2 of security.auth_to_local, "RULE:[1:$1": expected DEFAULT`,
		"RULE:[1:$2]RULE:[2:$2]":      `rule 1 of security.auth_to_local, "RULE:[1:$2]": $2 in "$2"; expected $0 to $1`,
		"RULE:[1:$]":                  `$ in "$"; expected $0 to $1`,
		"RULE:[:$1]":                  `"" is not a number of components`,
		"RULE:[9999999999999999999:]": "is not a number of components",
		"RULE:[1:$1](*)":              `the expression "*" is not supported`,
		`RULE:[1:$1](a\)`:             `not supported`,
		"RULE:[1:$1]((?=a)":           `not supported`,
		"RULE:[1:$1]([a-z&&[^b]])":    "an intersection of classes",
		"RULE:[1:$1]s/[[:alpha:]]/x/": "a class inside a class",
		"RULE:[1:$1]s/[a&&b]/x/":      "an intersection of classes",
		"RULE:[1:$1]s/a/$1/":          `the replacement "$1" names group 1; the expression has 0 groups`,
		"RULE:[1:$1]s/a/$x/":          `a $ in the replacement "$x" is not followed by the number of a group`,
		`RULE:[1:$1]s/a/b\/`:          `the replacement "b\\" ends with a backslash`,
		"RULE:[1:$1]s/a/b":            `rule 2 of security.auth_to_local, "s/a/b": expected DEFAULT`,
	} {
		if got, err := ParseRules(rules); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want an error with %s", rules, got, err, want)
		}
	}
}

// TestRulesLowerCase checks that Hadoop's flag L converts names to lower case.
func TestRulesLowerCase(t *testing.T) {
	for _, text := range []string{"RULE:[1:$1]L", "RULE:[1:$1]/L", "RULE:[1:$1]s/O/O/L", "RULE:[1:$1](.*)s/O/O/g/L"} {
		rules, err := ParseRules(text + "\nDEFAULT")
		if err != nil || len(rules) != 2 || rules[0].String() != text {
			t.Errorf("%s: %v, %v", text, rules, err)
			continue
		}
		n := Naming{Rules: rules, RemoveRealm: true}
		if id, err := n.Authorize("BOB@R", ""); id != "bob" || err != nil {
			t.Errorf("%s: %q, %v", text, id, err)
		}
	}
}

// FuzzRules checks that rules that can be read are printed as they were read, and that they give every
// principal an id or an error.
func FuzzRules(f *testing.F) {
	for _, x := range readVectors(f).Names {
		f.Add(x.Rules, x.Principal)
	}
	f.Fuzz(func(t *testing.T, text, principal string) {
		rules, err := ParseRules(text)
		if err != nil {
			return
		}
		var b strings.Builder
		for _, r := range rules {
			b.WriteString(r.String())
		}
		again, err := ParseRules(b.String())
		if err != nil || len(again) != len(rules) {
			t.Fatalf("%q reads back as %v, %v", b.String(), again, err)
		}
		for _, remove := range []bool{false, true} {
			n, m := Naming{rules, "R", remove, remove}, Naming{again, "R", remove, remove}
			id, err := n.Authorize(principal, "super")
			if (id == "") != (err != nil) {
				t.Errorf("id %q, %v", id, err)
			}
			if other, _ := m.Authorize(principal, ""); other != id {
				t.Errorf("%q and %q", id, other)
			}
		}
	})
}
