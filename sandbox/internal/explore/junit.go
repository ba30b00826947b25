// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"encoding/xml"
	"os"
	"time"
)

// JUnitCase is a test case of a report for CI: it has passed unless Failure, Error or
// Skipped is set.
type JUnitCase struct {
	Name  string `xml:"name,attr"`
	Class string `xml:"classname,attr"`
	// Time is in seconds.
	Time    float64    `xml:"time,attr"`
	Failure *JUnitText `xml:"failure,omitempty"`
	Error   *JUnitText `xml:"error,omitempty"`
	Skipped *JUnitText `xml:"skipped,omitempty"`
}

// JUnitText says why a case has not passed.
type JUnitText struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes a report for CI to a file.
func WriteJUnit(file, name string, took time.Duration, cases []JUnitCase) error {
	suite := struct {
		XMLName  xml.Name    `xml:"testsuite"`
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Time     float64     `xml:"time,attr"`
		Cases    []JUnitCase `xml:"testcase"`
	}{Name: name, Tests: len(cases), Time: took.Seconds(), Cases: cases}
	for _, c := range cases {
		if c.Failure != nil {
			suite.Failures++
		}
	}
	text, err := xml.MarshalIndent(suite, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append([]byte(xml.Header), append(text, '\n')...), 0o600)
}
