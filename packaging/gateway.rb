class Gateway < Formula
  desc "Local gateway between AI tools and model platforms, with exact bills"
  homepage "https://github.com/{{repository}}"
  version "{{version}}"
  license "MIT"

  on_macos do
    on_arm do
      url "https://github.com/{{repository}}/releases/download/v{{version}}/gateway-darwin-arm64"
      sha256 "{{sha256 gateway-darwin-arm64}}"
    end
    on_intel do
      url "https://github.com/{{repository}}/releases/download/v{{version}}/gateway-darwin-x64"
      sha256 "{{sha256 gateway-darwin-x64}}"
    end
  end

  on_linux do
    on_arm do
      url "https://github.com/{{repository}}/releases/download/v{{version}}/gateway-linux-arm64"
      sha256 "{{sha256 gateway-linux-arm64}}"
    end
    on_intel do
      url "https://github.com/{{repository}}/releases/download/v{{version}}/gateway-linux-x64"
      sha256 "{{sha256 gateway-linux-x64}}"
    end
  end

  def install
    bin.install Dir["gateway-*"].first => "gateway"
    # It was downloaded as a plain file, and is started below.
    chmod 0755, bin/"gateway"
    generate_completions_from_executable(bin/"gateway", "completions")
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/gateway --version")
  end
end
