import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import javax.tools.ToolProvider;

/** The JDK's own compiler as a tool that can stay: what Bazel's builder of Java is, in small. */
public final class JavacTool {
  public static void main(String[] words) throws IOException {
    if (words[words.length - 1].equals("--persistent_worker")) stay();
    else System.exit(compile(Files.readAllLines(Path.of(words[words.length - 1].substring(1))), System.err));
  }

  private static int compile(List<String> words, PrintStream err) {
    return ToolProvider.getSystemJavaCompiler().run(null, err, err, words.toArray(new String[0]));
  }

  private static void stay() throws IOException {
    DataInputStream in = new DataInputStream(System.in);
    for (;;) {
      byte[] request = new byte[(int) number(in)];
      in.readFully(request);
      ByteArrayOutputStream said = new ByteArrayOutputStream();
      int exitCode = compile(arguments(request), new PrintStream(said, true));
      ByteArrayOutputStream answer = new ByteArrayOutputStream();
      answer.write(8);
      write(answer, exitCode);
      answer.write(18);
      write(answer, said.size());
      said.writeTo(answer);
      write(System.out, answer.size());
      answer.writeTo(System.out);
      System.out.flush();
    }
  }

  /** The fields of number 1. */
  private static List<String> arguments(byte[] message) {
    List<String> words = new ArrayList<>();
    int[] at = {0};
    while (at[0] < message.length) {
      long tag = number(message, at);
      long value = number(message, at);
      if (tag % 8 != 2) continue;
      if (tag == 10) words.add(new String(message, at[0], (int) value, StandardCharsets.UTF_8));
      at[0] += (int) value;
    }
    return words;
  }

  private static long number(byte[] bytes, int[] at) {
    long value = 0;
    for (int shift = 0; ; shift += 7) {
      byte next = bytes[at[0]++];
      value |= (long) (next & 127) << shift;
      if (next >= 0) return value;
    }
  }

  private static long number(DataInputStream in) throws IOException {
    long value = 0;
    for (int shift = 0; ; shift += 7) {
      int next = in.read();
      if (next < 0) throw new EOFException();
      value |= (long) (next & 127) << shift;
      if (next < 128) return value;
    }
  }

  private static void write(java.io.OutputStream to, int value) throws IOException {
    int rest = value;
    for (; rest > 127; rest >>>= 7) to.write(rest & 127 | 128);
    to.write(rest);
  }
}
