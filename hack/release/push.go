// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	ocilayout "github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"sigs.k8s.io/yaml"
)

// Media types of charts, as Helm uses them, and of signatures, as cosign uses them.
const (
	typeChartConfig = "application/vnd.cncf.helm.config.v1+json"
	typeChart       = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	typeSignature   = "application/vnd.dev.cosign.simplesigning.v1+json"
)

// push pushes the image and the chart in a release folder, and prints their names and digests. If a
// key is given, it also pushes their signatures.
func push(args []string) error {
	flags := flag.NewFlagSet("push", flag.ExitOnError)
	folder := flags.String("folder", "", "the folder that make release made")
	version := flags.String("version", "", "its version")
	image := flags.String("image", "", "the repository of the image")
	charts := flags.String("charts", "", "the folder of the registry for the chart's repository")
	key := flags.String("key", "", "the private key that signs both")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *folder == "" || *version == "" || *image == "" || *charts == "" || flags.NArg() > 0 {
		return errors.New("push: want --folder, --version, --image and --charts")
	}
	var s *signer
	if *key != "" {
		private, err := os.ReadFile(*key)
		if err != nil {
			return err
		}
		if s, err = newSigner(private); err != nil {
			return err
		}
	}
	// Check both repository names before anything is pushed.
	images, err := repositoryOf("IMAGE", *image, *image)
	if err != nil {
		return err
	}
	packages, err := repositoryOf("CHARTS", *charts, path.Join(*charts, "tidekeeper"))
	if err != nil {
		return err
	}
	for _, one := range []struct {
		repository name.Repository
		push       func(name.Repository) (string, error)
	}{
		{images, func(to name.Repository) (string, error) {
			return pushImage(filepath.Join(*folder, "tidekeeper-"+*version+"-image.tar"), to, *version)
		}},
		{packages, func(to name.Repository) (string, error) {
			number := strings.TrimPrefix(*version, "v")
			return pushChart(filepath.Join(*folder, "tidekeeper-"+number+".tgz"), to, number)
		}},
	} {
		digest, err := one.push(one.repository)
		if err == nil && s != nil {
			err = pushSignature(s, one.repository, digest)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", one.repository, err)
		}
		fmt.Println(one.repository.Name() + "@" + digest)
	}
	return nil
}

// repositoryOf parses the repository name in a variable of make push-release. The name must include
// a registry.
func repositoryOf(variable, value, repository string) (name.Repository, error) {
	r, err := name.NewRepository(repository, name.StrictValidation)
	if err != nil {
		return r, fmt.Errorf("%s=%s: want a name with its registry, such as registry.example.com/tidekeeper", variable, value)
	}
	return r, nil
}

// asUser authenticates with the credentials that docker login or helm registry login have stored.
var asUser = remote.WithAuthFromKeychain(authn.DefaultKeychain)

func pushImage(file string, to name.Repository, tag string) (string, error) {
	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	if err := untar(file, dir); err != nil {
		return "", err
	}
	top, err := ocilayout.ImageIndexFromPath(dir)
	if err != nil {
		return "", err
	}
	list, err := top.IndexManifest()
	if err != nil {
		return "", err
	}
	if len(list.Manifests) != 1 {
		return "", fmt.Errorf("%s has %d images, want one", file, len(list.Manifests))
	}
	index, err := top.ImageIndex(list.Manifests[0].Digest)
	if err != nil {
		return "", err
	}
	return list.Manifests[0].Digest.String(), remote.WriteIndex(to.Tag(tag), index, asUser)
}

// untar unpacks a tar file that this program has written, so the archive contains only regular
// files.
func untar(file, dir string) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for r := tar.NewReader(in); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		content, err := io.ReadAll(r)
		if err == nil {
			err = root.MkdirAll(path.Dir(header.Name), 0o755)
		}
		if err == nil {
			err = root.WriteFile(header.Name, content, 0o644)
		}
		if err != nil {
			return err
		}
	}
}

// pushChart pushes a chart in the same way as helm push. It omits the time of the push, so that the
// digest is reproducible.
func pushChart(file string, to name.Repository, tag string) (string, error) {
	chart, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	meta, err := metadataOf(chart)
	if err != nil {
		return "", err
	}
	return pushArtifact(to, tag, blob{typeChartConfig, meta}, blob{typeChart, chart}, nil)
}

// metadataOf returns a chart's Chart.yaml as JSON.
func metadataOf(chart []byte) ([]byte, error) {
	plain, err := uncompress(chart)
	if err != nil {
		return nil, err
	}
	for r := tar.NewReader(bytes.NewReader(plain)); ; {
		header, err := r.Next()
		if err != nil {
			return nil, fmt.Errorf("looking for Chart.yaml: %w", err)
		}
		if header.Name != "tidekeeper/Chart.yaml" {
			continue
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		return yaml.YAMLToJSON(text)
	}
}

// pushSignature pushes a signature of the manifest with the given digest. It uses the tag under
// which cosign verify --key looks for the signature.
func pushSignature(s *signer, to name.Repository, digest string) error {
	payload, err := json.Marshal(map[string]any{"critical": map[string]any{
		"identity": map[string]string{"docker-reference": to.Name()},
		"image":    map[string]string{"docker-manifest-digest": digest},
		"type":     "cosign container image signature",
	}, "optional": nil})
	if err != nil {
		return err
	}
	signature, err := s.sign(payload)
	if err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": "", "os": "", "config": map[string]any{}, "rootfs": rootFS{Type: "layers", DiffIDs: []string{"sha256:" + sha(payload)}},
	})
	if err != nil {
		return err
	}
	_, err = pushArtifact(to, strings.Replace(digest, ":", "-", 1)+".sig", blob{typeConfig, config}, blob{typeSignature, payload}, map[string]string{
		"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(signature),
	})
	return err
}

// blob is content together with its media type.
type blob struct {
	mediaType string
	content   []byte
}

func (b blob) descriptor() descriptor {
	return descriptor{MediaType: b.mediaType, Digest: "sha256:" + sha(b.content), Size: len(b.content)}
}

// RawManifest implements [remote.Taggable]. It returns the content of a manifest.
func (b blob) RawManifest() ([]byte, error) { return b.content, nil }

// MediaType returns the media type of the manifest.
func (b blob) MediaType() (types.MediaType, error) { //nolint:unparam // the signature is fixed by an interface
	return types.MediaType(b.mediaType), nil
}

// pushArtifact pushes an artifact that has a configuration and a single layer. It returns the
// digest of the artifact's manifest.
func pushArtifact(to name.Repository, tag string, config, layer blob, annotations map[string]string) (string, error) {
	for _, b := range []blob{config, layer} {
		if err := remote.WriteLayer(to, static.NewLayer(b.content, types.MediaType(b.mediaType)), asUser); err != nil {
			return "", err
		}
	}
	of, described := config.descriptor(), layer.descriptor()
	described.Annotations = annotations
	data, err := json.Marshal(manifest{SchemaVersion: 2, MediaType: typeManifest, Config: &of, Layers: []descriptor{described}})
	if err != nil {
		return "", err
	}
	return "sha256:" + sha(data), remote.Put(to.Tag(tag), blob{typeManifest, data}, asUser)
}
