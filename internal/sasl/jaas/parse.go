package jaas

import (
	"fmt"
	"slices"
	"strings"

	"bellwether/internal/sasl"
)

// FileMax is the largest file that Parse accepts, in bytes.
const FileMax = 1 << 20

// File holds the sections of a file in their order.
type File struct {
	Name     string
	Sections []Section
}

// Section holds what a login context has: its modules in their order.
type Section struct {
	Name    string
	Modules []Module
	place   place
}

// Module is one login module with its options.
type Module struct {
	Class string
	Flag  string // required, requisite, sufficient or optional
	// Options are in the order of the file. If a name comes twice, the later value counts.
	Options []Option
	place   place
}

// Option is one option of a module.
type Option struct {
	Name  string
	Value sasl.Secret
	place place
}

// place is a place in a file. Line and column begin with 1; the column counts characters.
type place struct {
	file         string
	line, column int
}

func (p place) errorf(format string, args ...any) error {
	return fmt.Errorf("%s:%d:%d: %s", p.file, p.line, p.column, fmt.Sprintf(format, args...))
}

// Parse reads a file. The name appears in errors. The function property gives the value of a
// system property, for ${...} in the values of options; nil knows none.
func Parse(name string, text []byte, property func(string) (string, bool)) (*File, error) {
	if len(text) > FileMax {
		return nil, fmt.Errorf("%s has %d bytes; a JAAS file may have %d", name, len(text), FileMax)
	}
	if property == nil {
		property = func(string) (string, bool) { return "", false }
	}
	p := &parser{scanner: newScanner(name, string(text)), property: property}
	f := &File{Name: name}
	if err := p.next(); err != nil {
		return nil, err
	}
	for p.token.kind != end {
		s, err := p.section()
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(f.Sections, func(o Section) bool { return o.Name == s.Name }); i >= 0 {
			return nil, s.place.errorf("the section %s is already in line %d; rename or remove one of them", s.Name, f.Sections[i].place.line)
		}
		f.Sections = append(f.Sections, s)
	}
	return f, nil
}

// Section returns the section of this name.
func (f *File) Section(name string) (*Section, error) {
	var names []string
	for i := range f.Sections {
		if f.Sections[i].Name == name {
			return &f.Sections[i], nil
		}
		names = append(names, f.Sections[i].Name)
	}
	if names == nil {
		names = []string{"none"}
	}
	return nil, fmt.Errorf("%s has no section %s (it has: %s)", f.Name, name, strings.Join(names, ", "))
}

// parser has one token of lookahead.
type parser struct {
	scanner  *scanner
	property func(string) (string, bool)
	token    token
}

func (p *parser) next() (err error) {
	p.token, err = p.scanner.scan()
	return err
}

// expected returns the error for a token that is not the expected one.
func (p *parser) expected(what string) error {
	return p.token.place.errorf("expected %s, found %s", what, p.token.kind)
}

// text takes a word or a quoted text.
func (p *parser) text(what string) (string, place, error) {
	t := p.token
	if t.kind != word && t.kind != quoted {
		return "", t.place, p.expected(what)
	}
	return t.text, t.place, p.next()
}

// symbol takes a single character.
func (p *parser) symbol(k kind, what string) error {
	if p.token.kind != k {
		return p.expected(what)
	}
	return p.next()
}

// section reads: name { module ... } ;
func (p *parser) section() (s Section, err error) {
	if s.Name, s.place, err = p.text("the name of a section"); err != nil {
		return s, err
	}
	if err := p.symbol('{', fmt.Sprintf("{ after the name %s of a section", s.Name)); err != nil {
		return s, err
	}
	for p.token.kind != '}' {
		m, err := p.module(s.Name)
		if err != nil {
			return s, err
		}
		s.Modules = append(s.Modules, m)
	}
	if err := p.next(); err != nil {
		return s, err
	}
	return s, p.symbol(';', fmt.Sprintf("; after the } of section %s", s.Name))
}

var flags = []string{"required", "requisite", "sufficient", "optional"}

// module reads: class flag option ... ;
func (p *parser) module(section string) (m Module, err error) {
	if m.Class, m.place, err = p.text(fmt.Sprintf("the class of a login module, or } at the end of section %s", section)); err != nil {
		return m, err
	}
	flag, at, err := p.text("required, requisite, sufficient or optional after " + m.Class)
	if err != nil {
		return m, err
	}
	if m.Flag = strings.ToLower(flag); !slices.Contains(flags, m.Flag) {
		return m, at.errorf("expected required, requisite, sufficient or optional after %s, found another word", m.Class)
	}
	for p.token.kind != ';' {
		o, err := p.option(m.Class)
		if err != nil {
			return m, err
		}
		m.Options = append(m.Options, o)
	}
	return m, p.next()
}

// option reads: name = value
func (p *parser) option(class string) (o Option, err error) {
	if o.Name, _, err = p.text(fmt.Sprintf("an option, or ; at the end of the options of %s", class)); err != nil {
		return o, err
	}
	if err := p.symbol('=', "= after the name of an option"); err != nil {
		return o, err
	}
	value, at, err := p.text("the value of " + o.Name)
	if err != nil {
		return o, err
	}
	if value, err = expand(value, p.property); err != nil {
		return o, at.errorf("the value of %s: %v", o.Name, err)
	}
	o.Value, o.place = sasl.NewSecret(value), at
	return o, nil
}
