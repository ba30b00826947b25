// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"strings"
	"unicode"
)

// Severity states whether a remark requires the user's attention.
type Severity string

const (
	// Note means that nothing is lost and no action is needed.
	Note Severity = "note"
	// LeftOut means that a part of the original object could not be converted.
	LeftOut Severity = "left out"
)

// Remark is a message about an original object or one of its fields.
type Remark struct {
	Severity Severity
	// Object describes the original object, in the format of the function describe. It is "" for a
	// remark about several objects.
	Object string
	// Field is the path of the field that the remark is about. It is "" for the whole object.
	Field string
	// Why explains why the field or object was left out or converted differently.
	Why string
	// Instead is advice on what the user can do about the problem, or a consequence for the user.
	// It is "" if there is nothing to add.
	Instead string
}

// String formats the remark in one line, without control characters.
func (r Remark) String() string {
	var parts []string
	for _, part := range []string{string(r.Severity), r.Object, r.Field, r.Why, r.Instead} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return oneLine(strings.Join(parts, ": "))
}

// oneLine returns the string in one line, without unprintable characters.
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

// index formats the path of an entry in a map.
func index(field, key string) string { return fmt.Sprintf("%s[%.320q]", field, key) }
