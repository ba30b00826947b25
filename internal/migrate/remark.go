// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"strings"
	"unicode"
)

// Weight is how important a remark is.
type Weight string

const (
	// Note means that nothing is lost, and there is nothing to do.
	Note Weight = "note"
	// LeftOut means that something of the original object is not in the result.
	LeftOut Weight = "left out"
)

// Remark is a message about one field of one object.
type Remark struct {
	Weight Weight
	// Object names the original object and its source.
	Object string
	// Field is the path of the field, "" for the whole object.
	Field string
	// Why it is not carried over, or is carried over differently.
	Why string
	// Instead is what to do about it, "" for nothing.
	Instead string
}

// String returns the remark in one line, without control characters.
func (r Remark) String() string {
	var parts []string
	for _, part := range []string{string(r.Weight), r.Object, r.Field, r.Why, r.Instead} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return oneLine(strings.Join(parts, ": "))
}

// oneLine removes everything that is not printable.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsGraphic(r) }), " ")
}

// remarks collects the remarks about one object.
type remarks struct {
	object string
	list   []Remark
}

func (r *remarks) note(field, why, instead string) {
	r.list = append(r.list, Remark{Note, r.object, field, why, instead})
}

func (r *remarks) leftOut(field, why, instead string) {
	r.list = append(r.list, Remark{LeftOut, r.object, field, why, instead})
}

// index is the path of a value in a map or list.
func index(field, key string) string { return fmt.Sprintf("%s[%.320q]", field, key) }
