// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"
)

// Media types from the OCI image specification.
const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

type platform struct {
	OS           string `json:"os"`
	Architecture string `json:"architecture"`
}

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// manifest is a platform's image manifest or, if Manifests is set, an image index.
type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        *descriptor  `json:"config,omitempty"`
	Layers        []descriptor `json:"layers,omitempty"`
	Manifests     []descriptor `json:"manifests,omitempty"`
}

type imageConfig struct {
	platform
	Created time.Time     `json:"created"`
	Config  runtimeConfig `json:"config"`
	RootFS  rootFS        `json:"rootfs"`
}

type runtimeConfig struct {
	User         string
	ExposedPorts map[string]struct{}
	Entrypoint   []string
	Labels       map[string]string
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

// layout collects the files of an OCI layout.
type layout struct {
	files []file
}

func (l *layout) blob(mediaType string, content []byte) descriptor {
	digest := sha(content)
	l.files = append(l.files, file{name: "blobs/sha256/" + digest, mode: 0o644, content: content})
	return descriptor{MediaType: mediaType, Digest: "sha256:" + digest, Size: len(content)}
}

func (l *layout) document(mediaType string, document any) (descriptor, error) {
	data, err := json.Marshal(document)
	return l.blob(mediaType, data), err
}

// imageOf returns the manager's image as a tar archive of an OCI layout, and the image's digest.
// For each platform, the image has a single layer with a single file. It contains no shell. It has
// no /etc/passwd, so its user is a number, which has no rights.
func imageOf(binaries map[platform][]byte, order []platform, version string, at time.Time) ([]byte, string, error) {
	l := &layout{}
	index := manifest{SchemaVersion: 2, MediaType: typeIndex}
	for _, p := range order {
		one, err := l.platform(p, binaries[p], version, at)
		if err != nil {
			return nil, "", err
		}
		index.Manifests = append(index.Manifests, one)
	}
	image, err := l.document(typeIndex, index)
	if err != nil {
		return nil, "", err
	}
	digest := image.Digest
	image.Annotations = map[string]string{"org.opencontainers.image.ref.name": version}
	top, err := json.Marshal(manifest{SchemaVersion: 2, MediaType: typeIndex, Manifests: []descriptor{image}})
	if err != nil {
		return nil, "", err
	}
	l.files = append(l.files,
		file{name: "index.json", mode: 0o644, content: top},
		file{name: "oci-layout", mode: 0o644, content: []byte(`{"imageLayoutVersion":"1.0.0"}`)})
	data, err := tarball(l.files, at)
	return data, digest, err
}

func (l *layout) platform(p platform, binary []byte, version string, at time.Time) (descriptor, error) {
	layer, err := tarball([]file{{name: "tidekeeper", mode: 0o755, content: binary}}, at)
	if err != nil {
		return descriptor{}, err
	}
	packed, err := compress(layer)
	if err != nil {
		return descriptor{}, err
	}
	config, err := l.document(typeConfig, imageConfig{
		platform: p, Created: at,
		Config: runtimeConfig{
			User: "65532:65532", Entrypoint: []string{"/tidekeeper"},
			// These are the ports of the metrics and the probes.
			ExposedPorts: map[string]struct{}{"8443/tcp": {}, "8081/tcp": {}},
			Labels: map[string]string{
				"org.opencontainers.image.title":       "tidekeeper",
				"org.opencontainers.image.description": "Keeps labels and taints of node pools as declared, and restarts workloads on a schedule",
				"org.opencontainers.image.licenses":    "Apache-2.0",
				"org.opencontainers.image.version":     version,
			},
		},
		RootFS: rootFS{Type: "layers", DiffIDs: []string{"sha256:" + sha(layer)}},
	})
	if err != nil {
		return descriptor{}, err
	}
	one, err := l.document(typeManifest, manifest{
		SchemaVersion: 2, MediaType: typeManifest, Config: &config, Layers: []descriptor{l.blob(typeLayer, packed)},
	})
	one.Platform = &p
	return one, err
}

func sha(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
