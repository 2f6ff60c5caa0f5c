package shelf;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.airlift.slice.Slice;
import io.airlift.slice.Slices;
import java.util.*;

/** What a sink has done: a new file, and deleted rows of others. */
record Fragment(Optional<String> file, Map<String, TreeSet<Long>> deleted) {
    Slice toSlice() {
        StringBuilder text = new StringBuilder();
        file.ifPresent(name -> text.append("file ").append(name).append('\n'));
        deleted.forEach((name, positions) ->
                positions.forEach(position -> text.append("delete ").append(name).append(' ').append(position).append('\n')));
        return Slices.utf8Slice(text.toString());
    }

    static Fragment of(Slice slice) {
        Optional<String> file = Optional.empty();
        Map<String, TreeSet<Long>> deleted = new TreeMap<>();
        for (String line : slice.toString(UTF_8).lines().toList()) {
            String[] words = line.split(" ");
            if (words[0].equals("file")) {
                file = Optional.of(words[1]);
            }
            else {
                deleted.computeIfAbsent(words[1], name -> new TreeSet<>()).add(Long.valueOf(words[2]));
            }
        }
        return new Fragment(file, deleted);
    }
}
