// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package results

import (
	"encoding/xml"
	"os"
	"strings"
)

// suite is a report in JUnit format. A testCase without a failure, error or skipped element has
// passed.
type (
	suite struct {
		XMLName  xml.Name   `xml:"testsuite"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Errors   int        `xml:"errors,attr"`
		Skipped  int        `xml:"skipped,attr"`
		Seconds  float64    `xml:"time,attr"`
		Cases    []testCase `xml:"testcase"`
	}
	testCase struct {
		Name    string  `xml:"name,attr"`
		Class   string  `xml:"classname,attr"`
		Seconds float64 `xml:"time,attr"`
		Failure *reason `xml:"failure,omitempty"`
		Error   *reason `xml:"error,omitempty"`
		Skipped *reason `xml:"skipped,omitempty"`
	}
	reason struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit writes a result to a file in JUnit format. Only confirmed findings are failures.
func (t *Tool[F]) JUnit(file string, r *Result[F]) error {
	found := map[string]F{}
	for _, f := range r.Findings {
		if f.Confirmed() {
			found[f.Case()] = f
		}
	}
	s := suite{Name: "sandbox " + t.Name, Tests: len(r.Played), Seconds: r.Took.Seconds()}
	for _, p := range r.Played {
		c := testCase{Name: p.Name, Class: t.Name, Seconds: p.Seconds}
		f, is := found[p.ID]
		switch {
		case is:
			c.Failure = &reason{Message: f.Title(), Text: strings.Join(f.Details(), "\n")}
			s.Failures++
		case p.Error != "":
			message, _, _ := strings.Cut(p.Error, "\n")
			c.Error = &reason{Message: message, Text: p.Error}
			s.Errors++
		case p.Outcome == NotReached:
			c.Skipped = &reason{Message: NotReached}
			s.Skipped++
		}
		s.Cases = append(s.Cases, c)
	}
	text, err := xml.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append([]byte(xml.Header), append(text, '\n')...), 0o600)
}
