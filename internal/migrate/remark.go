// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"strings"
	"unicode"
)

// Severity is the importance of a remark.
type Severity string

const (
	// Note means that nothing is lost, and no action is needed.
	Note Severity = "note"
	// LeftOut means that a part of the original object is not in the result.
	LeftOut Severity = "left out"
)

// Remark is a message about a field of an original object.
type Remark struct {
	Severity Severity
	// Object is the original object and its source.
	Object string
	// Field is the path of the field; "" for the whole object.
	Field string
	// Why is the reason why the field is left out or converted differently.
	Why string
	// Instead is the suggested action; "" for none.
	Instead string
}

// String returns the remark in one line, without control characters.
func (r Remark) String() string {
	var parts []string
	for _, part := range []string{string(r.Severity), r.Object, r.Field, r.Why, r.Instead} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return oneLine(strings.Join(parts, ": "))
}

// oneLine removes all characters that are not printable.
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
