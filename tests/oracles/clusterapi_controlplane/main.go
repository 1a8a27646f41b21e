// Answers questions about control planes with Cluster API's own code: cases come as JSON, answers go as JSON.
package main

import (
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/pkg"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/reconcilers/kubeadmcontrolplane"
	"sigs.k8s.io/cluster-api/util/certs"
	"sigs.k8s.io/cluster-api/util/kubeconfig"
)

type question struct {
	Cluster   string `json:"cluster"`
	Server    string `json:"server"`
	Algorithm string `json:"algorithm"`
	Threshold int    `json:"threshold"`
}

func (q question) answer() (map[string]any, error) {
	caKey, err := certs.NewSigner(bootstrapv1.EncryptionAlgorithmRSA2048)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, caKey.Public(), caKey)
	if err != nil {
		return nil, err
	}
	ca, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	made, err := kubeconfig.New(q.Cluster, q.Server, ca, caKey, kubeconfig.KeyEncryptionAlgorithm(bootstrapv1.EncryptionAlgorithmType(q.Algorithm)))
	if err != nil {
		return nil, err
	}
	text, err := clientcmd.Write(*made)
	if err != nil {
		return nil, err
	}
	rotate, err := kubeconfig.NeedsClientCertRotation(&corev1.Secret{Data: map[string][]byte{"value": text}}, time.Duration(q.Threshold)*time.Hour)
	if err != nil {
		return nil, err
	}
	user := made.AuthInfos[q.Cluster+"-admin"]
	block, _ := pem.Decode(user.ClientCertificateData)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, _ := pem.Decode(user.ClientKeyData)
	for _, cluster := range made.Clusters {
		cluster.CertificateAuthorityData = []byte("ca")
	}
	user.ClientCertificateData, user.ClientKeyData = []byte("certificate"), []byte("key")
	text, err = clientcmd.Write(*made)
	return map[string]any{
		"kubeconfig": string(text), "subject": certificate.Subject.String(), "usages": certificate.ExtKeyUsage, "keyUsage": certificate.KeyUsage,
		"hours": certificate.NotAfter.Sub(time.Now()).Round(time.Hour).Hours(), "algorithm": certificate.PublicKeyAlgorithm.String(), "key": key.Type, "rotate": rotate,
	}, err
}

func main() {
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	var answer any
	switch command := os.Args[1]; command {
	case "steps", "status":
		answer = kubeadmcontrolplane.Oracle(command, input)
	case "drift", "desired":
		answer = pkg.Oracle(command, input)
	case "kubeconfig":
		questions, answers := []question{}, []any{}
		if err := json.Unmarshal(input, &questions); err != nil {
			panic(err)
		}
		for _, q := range questions {
			one, err := q.answer()
			if err != nil {
				panic(err)
			}
			answers = append(answers, one)
		}
		answer = answers
	}
	if err := json.NewEncoder(os.Stdout).Encode(answer); err != nil {
		panic(err)
	}
}
