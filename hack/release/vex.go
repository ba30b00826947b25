// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

// openVEX is a document in the format OpenVEX 0.2.0.
type openVEX struct {
	Context    string         `json:"@context"`
	ID         string         `json:"@id"`
	Author     string         `json:"author"`
	Timestamp  time.Time      `json:"timestamp"`
	Version    int            `json:"version"`
	Statements []vexStatement `json:"statements"`
}

type vexStatement struct {
	Vulnerability   vulnerability `json:"vulnerability"`
	Products        []product     `json:"products"`
	Status          string        `json:"status"`
	Justification   string        `json:"justification,omitempty"`
	ActionStatement string        `json:"action_statement,omitempty"`
}

type vulnerability struct {
	ID      string   `json:"@id"`
	Name    string   `json:"name"`
	Aliases []string `json:"aliases,omitempty"`
}

type product struct {
	ID            string    `json:"@id"`
	Subcomponents []product `json:"subcomponents,omitempty"`
}

// finding is govulncheck's report of a vulnerability in a module. If a vulnerable function is
// called, the first frame of Trace names that function.
type finding struct {
	OSV          string `json:"osv"`
	FixedVersion string `json:"fixed_version"`
	Trace        []struct {
		Module   string `json:"module"`
		Version  string `json:"version"`
		Function string `json:"function"`
	} `json:"trace"`
}

// vexOf returns an OpenVEX document for the given output of govulncheck -format=json. For each
// vulnerability, the document states whether the vulnerable code is reached. Its products have the
// identifiers that scanners use: the module, and the image by its digest.
func vexOf(findings []byte, version, image, digest string, at time.Time) ([]byte, error) {
	aliases := map[string][]string{}
	found := map[string][]finding{}
	for decoder := json.NewDecoder(bytes.NewReader(findings)); ; {
		var message struct {
			OSV *struct {
				ID      string   `json:"id"`
				Aliases []string `json:"aliases"`
			} `json:"osv"`
			Finding *finding `json:"finding"`
		}
		if err := decoder.Decode(&message); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("findings of govulncheck: %w", err)
		}
		if message.OSV != nil {
			aliases[message.OSV.ID] = message.OSV.Aliases
		}
		if f := message.Finding; f != nil && len(f.Trace) > 0 {
			found[f.OSV] = append(found[f.OSV], *f)
		}
	}
	name := modulePath + "@" + version
	out := openVEX{
		Context: "https://openvex.dev/ns/v0.2.0", ID: "https://" + name + "/openvex", Author: "The Tidekeeper Authors",
		Timestamp: at, Version: 1, Statements: []vexStatement{},
	}
	products := []string{purl(modulePath, version)}
	if digest != "" {
		products = append(products, imagePurl(image, digest))
	}
	for _, id := range slices.Sorted(maps.Keys(found)) {
		out.Statements = append(out.Statements, statementOf(id, aliases[id], found[id], products))
	}
	data, err := json.MarshalIndent(out, "", "  ")
	return append(data, '\n'), err
}

// statementOf returns the statement about a vulnerability.
func statementOf(id string, aliases []string, found []finding, products []string) vexStatement {
	s := vexStatement{
		Vulnerability: vulnerability{ID: "https://pkg.go.dev/vuln/" + id, Name: id, Aliases: aliases},
		Status:        "not_affected", Justification: "vulnerable_code_not_in_execute_path",
	}
	var parts []product
	for _, f := range found {
		part := product{ID: purl(f.Trace[0].Module, strings.TrimPrefix(f.Trace[0].Version, "go"))}
		if !slices.ContainsFunc(parts, func(p product) bool { return p.ID == part.ID }) {
			parts = append(parts, part)
		}
		if f.Trace[0].Function != "" {
			s.Status, s.Justification = "affected", ""
			s.ActionStatement = "Use a later release, once it has " + f.Trace[0].Module + " without this."
			if f.FixedVersion != "" {
				s.ActionStatement = "Use a later release, with " + f.Trace[0].Module + " " + f.FixedVersion + "."
			}
		}
	}
	for _, name := range products {
		s.Products = append(s.Products, product{ID: name, Subcomponents: parts})
	}
	return s
}

// imagePurl returns an image's package URL, by which scanners identify the image. It consists of
// the repository's last part, the digest, and the repository.
func imagePurl(image, digest string) string {
	name := "pkg:oci/" + image[strings.LastIndex(image, "/")+1:] + "@" + strings.ReplaceAll(digest, ":", "%3A")
	if strings.Contains(image, "/") {
		name += "?repository_url=" + url.QueryEscape(image)
	}
	return name
}
